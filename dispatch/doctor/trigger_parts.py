"""Checks of what triggers ask for: parts that are built, and folders fit for a job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from os import getgid, getuid
from pathlib import Path

from dispatch.console.findings import Finding
from dispatch.console.fleet_words import named
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor import trigger_flows, trigger_keys
from dispatch.doctor.configuration import Known
from dispatch.doctor.triggers import AREA
from dispatch.ids import Kind
from dispatch.jobs import unavailable_field
from dispatch.schedules.definition import BrokenDefinitionError
from pidispatch_site.errors import PidispatchError
from runs.workspace.folder import check_folder
from runs.workspace.git import Git
from runs.workspace.jobuser import Account


def look(known: Known, file: TriggersFile) -> Iterator[Finding]:
    """Judge what the schedules of the file ask for."""
    yield from trigger_keys.look(file)
    yield from _unavailable(file)
    yield from _folders(file)
    yield from trigger_flows.look(known, file)


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
    worker, git = Account(getuid(), getgid()), Git(time_limit=timedelta(seconds=trigger_flows.GIT_SECONDS))
    for folder, ids in list(using.items())[: trigger_flows.MOST_FOLDERS]:
        try:
            check_folder(folder, account=worker, git=git, base=Path("/"))
        except PidispatchError as error:
            text, _, fix = str(error).partition(": ")
            told = f"no job can run in the folder of {named(ids)}: {text}"
            yield AREA.warning("folder", told, f"{fix[:1].upper()}{fix[1:]}" or "Correct the entry.")
    if len(using) > trigger_flows.MOST_FOLDERS:
        more = len(using) - trigger_flows.MOST_FOLDERS
        yield AREA.warning("folder", f"{more} more folders were not looked at", "Look at them by hand.")
