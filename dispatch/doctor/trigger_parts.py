"""Checks of what triggers ask for: parts that are built, flows that there are, images that this host has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from os import getgid, getuid
from pathlib import Path

from dispatch.console.findings import Finding
from dispatch.console.fleet_words import named
from dispatch.console.trigger_words import short
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor.bounded import within
from dispatch.doctor.configuration import Known
from dispatch.doctor.triggers import AREA
from dispatch.ids import Kind
from dispatch.jobrules import is_flow_name
from dispatch.jobs import unavailable_field
from dispatch.schedules.definition import BrokenDefinitionError
from dispatch.triggers.entries import Trigger
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.variables import BackendKind
from runs import preflight
from runs.engine import Engine
from runs.outcome import InfraFault
from runs.protocols import EngineSilentError, ImageFacts
from runs.workspace.git import Git
from runs.workspace.jobuser import Account, git_account

# Repositories and images that are looked at, each by a question to git or to the engine.
_MOST_FOLDERS = 40
_MOST_IMAGES = 20
_GIT_SECONDS = 5.0
_FLOW_NAME = "Correct it: 1 to 64 lower-case letters, digits, - and _, a letter or digit at both ends."


def look(known: Known, file: TriggersFile, *, seconds: float) -> Iterator[Finding]:
    """Judge what the schedules of the file ask for; the engine gets so many seconds for each answer."""
    yield from _unavailable(file)
    if "PI_GLOBAL_PI_DIR" not in known.wrong:
        yield from _flows(file, known.config.global_pi_dir)
    if "PI_BACKEND" not in known.wrong and known.config.backend is BackendKind.DOCKER:
        yield from _images(known, file, seconds)


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


def _images(known: Known, file: TriggersFile, seconds: float) -> Iterator[Finding]:
    """Look for the images that schedules name themselves; the default one is looked for with the host."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for schedule_id, trigger in file.cron.items():
        if trigger.run.image:
            wanted[trigger.run.image].append(schedule_id)
    if not wanted:
        return
    try:
        asked = Engine(environment=known.config.environment, quick_seconds=seconds)
    except ConfigurationError:
        return
    with closing(asked):
        yield from _judged(asked, wanted, file.cron, seconds)


def _judged(
    asked: Engine, wanted: Mapping[str, Sequence[str]], cron: Mapping[str, Trigger], seconds: float
) -> Iterator[Finding]:
    for reference in sorted(wanted)[:_MOST_IMAGES]:
        ids = wanted[reference]
        try:
            facts = within(seconds, partial(asked.image, reference))
        except (EngineSilentError, TimeoutError):
            # Told with the host.
            return
        if facts is None:
            yield AREA.warning(
                "image",
                f"the image {short(reference)} of {named(ids)} is not on this host, and no job pulls one",
                "Build or load it here, or correct the entry.",
            )
        elif refused := _refused(reference, facts, [cron[one] for one in ids]):
            yield AREA.warning(
                "image",
                f"the image {short(reference)} of {named(ids)} cannot do what they need ({refused})",
                "Build it from ours (image/build.sh), which declares what it can do; or name another.",
            )


def _refused(reference: str, facts: ImageFacts, triggers: Iterable[Trigger]) -> str | None:
    commands = any(one.run.command for one in triggers)
    needs = preflight.Needs(kind=Kind.LOCAL, commands=commands, any_uid=None)
    refused = preflight.judge_image(reference, facts, needs)
    return refused.reason if refused else None
