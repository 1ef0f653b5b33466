"""Checks of the flows that triggers ask for: each is a skill, at HEAD of its folder or in the overlay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from os import getgid, getuid
from pathlib import Path

from dispatch.console.findings import Finding
from dispatch.console.fleet_words import named
from dispatch.console.trigger_words import short
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor.configuration import Known
from dispatch.doctor.triggers import AREA
from dispatch.jobrules import is_flow_name
from runs.outcome import InfraFault
from runs.workspace.git import Git
from runs.workspace.jobuser import Account, git_account

# Each folder is a question to git or two.
MOST_FOLDERS = 40
GIT_SECONDS = 5.0
_FLOW_NAME = "Correct it: 1 to 64 lower-case letters, digits, - and _, a letter or digit at both ends."


def look(known: Known, file: TriggersFile) -> Iterator[Finding]:
    """Find schedules whose flow is no skill; none where the variable that names the overlay is wrong."""
    if "PI_GLOBAL_PI_DIR" not in known.wrong:
        yield from _flows(file, known.config.global_pi_dir)


def _flows(file: TriggersFile, overlay: Path | None) -> Iterator[Finding]:
    wanted: dict[Path, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for schedule_id, trigger in file.cron.items():
        folder, flow = Path(trigger.run.folder or ""), trigger.run.flow
        if flow is None:
            continue
        if not is_flow_name(flow):
            yield AREA.warning(
                "flow", f"the flow {short(flow)!r} of {schedule_id} can be no skill's name", _FLOW_NAME
            )
        elif folder.is_absolute() and folder.is_dir() and not _is_skill(overlay, flow):
            wanted[folder][flow].append(schedule_id)
    for folder, flows in list(wanted.items())[:MOST_FOLDERS]:
        there = _committed(folder, flows)
        for flow in [] if there is None else sorted(flows.keys() - there):
            yield AREA.warning(
                "flow",
                f"flow {short(flow)} of {named(flows[flow])} is no skill: its folder has no"
                f" .pi/skills/{short(flow)}/SKILL.md at HEAD",
                "Commit it there, or put it into the overlay (PI_GLOBAL_PI_DIR); or correct the flow.",
            )
    if len(wanted) > MOST_FOLDERS:
        more = len(wanted) - MOST_FOLDERS
        yield AREA.warning("flow", f"the flows of {more} folders were not looked at", "Look at them by hand.")


def _is_skill(overlay: Path | None, flow: str) -> bool:
    return overlay is not None and (overlay / "skills" / flow / "SKILL.md").is_file()


def _committed(folder: Path, flows: Iterable[str]) -> Collection[str] | None:
    """Tell which flows are skills at HEAD of the folder; None where git gives no answer."""
    named_flows = list(flows)
    asked = "".join(f"HEAD:.pi/skills/{flow}/SKILL.md\n" for flow in named_flows)
    try:
        status = folder.stat()
        worker, owner = Account(getuid(), getgid()), Account(status.st_uid, status.st_gid)
        git = Git(account=git_account(worker=worker, owner=owner), time_limit=timedelta(seconds=GIT_SECONDS))
        answer = git.tell("cat-file", "--batch-check", cwd=folder, given=asked.encode())
    except (InfraFault, OSError):
        return None
    lines = answer.decode("utf-8", "replace").splitlines()
    return [flow for flow, line in zip(named_flows, lines, strict=False) if " blob " in line]
