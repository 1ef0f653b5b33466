"""Checks of what triggers ask for: parts that are built, flows that there are, folders fit for a job."""

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
from dispatch.doctor import trigger_keys
from dispatch.doctor.configuration import Known
from dispatch.doctor.triggers import AREA
from dispatch.ids import Kind
from dispatch.jobrules import is_flow_name
from dispatch.jobs import unavailable_field
from dispatch.schedules.definition import BrokenDefinitionError
from pidispatch_site.errors import PidispatchError
from runs.outcome import InfraFault
from runs.workspace.folder import check_folder
from runs.workspace.git import Git
from runs.workspace.jobuser import Account, git_account

# Each is a question to git or two.
_MOST_FOLDERS = 40
_GIT_SECONDS = 5.0
_FLOW_NAME = "Correct it: 1 to 64 lower-case letters, digits, - and _, a letter or digit at both ends."


def look(known: Known, file: TriggersFile) -> Iterator[Finding]:
    """Judge what the schedules of the file ask for."""
    yield from trigger_keys.look(file)
    yield from _unavailable(file)
    yield from _folders(file)
    if "PI_GLOBAL_PI_DIR" not in known.wrong:
        yield from _flows(file, known.config.global_pi_dir)


def _unavailable(file: TriggersFile) -> Iterator[Finding]:
    """Tell the fields by which schedules ask for parts that are not built: such jobs are refused."""
    asking: dict[str, list[str]] = defaultdict(list)
    for schedule in file.schedules.values():
        try:
            field = unavailable_field(schedule.job(), kinds={Kind.LOCAL})
        except BrokenDefinitionError:
            continue
        if field:
            asking[field].append(schedule.id)
    for field, ids in asking.items():
        yield AREA.warning(
            "not-available",
            f"{field} is for a part that this version does not have, and is set in {named(ids)}",
            "Take it out, or wait for that part: until then each of their jobs is refused (not-available).",
        )


def _folders(file: TriggersFile) -> Iterator[Finding]:
    """Judge the folders that are here as `run` does, since each of their jobs would be refused."""
    using: dict[str, list[str]] = defaultdict(list)
    for schedule_id, schedule in file.schedules.items():
        folder = str(schedule.run["folder"])
        if Path(folder).is_absolute() and Path(folder).is_dir():
            using[folder].append(schedule_id)
    worker, git = Account(getuid(), getgid()), Git(time_limit=timedelta(seconds=_GIT_SECONDS))
    for folder, ids in list(using.items())[:_MOST_FOLDERS]:
        try:
            check_folder(folder, account=worker, git=git, base=Path("/"))
        except PidispatchError as error:
            text, _, fix = str(error).partition(": ")
            told = f"no job can run in the folder of {named(ids)}: {text}"
            yield AREA.warning("folder", told, f"{fix[:1].upper()}{fix[1:]}" or "Correct the entry.")
    if len(using) > _MOST_FOLDERS:
        more = len(using) - _MOST_FOLDERS
        yield AREA.warning("folder", f"{more} more folders were not looked at", "Look at them by hand.")


def _flows(file: TriggersFile, overlay: Path | None) -> Iterator[Finding]:
    """Find schedules whose flow is no skill, neither at HEAD of their folder nor in the overlay."""
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
    for folder, flows in list(wanted.items())[:_MOST_FOLDERS]:
        there = _committed(folder, flows)
        for flow in [] if there is None else sorted(flows.keys() - there):
            yield AREA.warning(
                "flow",
                f"flow {short(flow)} of {named(flows[flow])} is no skill: its folder has no"
                f" .pi/skills/{short(flow)}/SKILL.md at HEAD",
                "Commit it there, or put it into the overlay (PI_GLOBAL_PI_DIR); or correct the flow.",
            )
    if len(wanted) > _MOST_FOLDERS:
        more = len(wanted) - _MOST_FOLDERS
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
        git = Git(account=git_account(worker=worker, owner=owner), time_limit=timedelta(seconds=_GIT_SECONDS))
        answer = git.tell("cat-file", "--batch-check", cwd=folder, given=asked.encode())
    except (InfraFault, OSError):
        return None
    lines = answer.decode("utf-8", "replace").splitlines()
    return [flow for flow, line in zip(named_flows, lines, strict=False) if " blob " in line]
