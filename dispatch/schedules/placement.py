"""Which schedules of a file this host can serve: those whose folder it has (Q 10.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dispatch.operator_files.problems import OperatorFileError, Problem, shown
from dispatch.schedules.definition import Schedule, of_trigger
from dispatch.triggers.entries import CronOn, Run, Trigger, Triggers, wire
from dispatch.triggers.parse import place_of


class UnservedReason(StrEnum):
    """Why a host does not serve a schedule."""

    FOLDER_RELATIVE = "folder-relative"
    FOLDER_ABSENT = "folder-absent"
    SKILLS_DIR_RELATIVE = "skills-dir-relative"
    SKILLS_DIR_ABSENT = "skills-dir-absent"
    ZONE_UNKNOWN = "zone-unknown"


_OF_FOLDER = UnservedReason.FOLDER_RELATIVE, UnservedReason.FOLDER_ABSENT
_OF_SKILLS_DIR = UnservedReason.SKILLS_DIR_RELATIVE, UnservedReason.SKILLS_DIR_ABSENT
_RELATIVE = "which is no absolute path; write it from the root of the file system"
_ABSENT = "which is no folder of this host; make it, or correct the path"
# The field that is wrong, what stands there, and the words for the person.
_WORDS: Mapping[UnservedReason, tuple[str, Callable[[Run], str | None], str]] = {
    UnservedReason.FOLDER_RELATIVE: ("run.folder", lambda run: run.folder, _RELATIVE),
    UnservedReason.FOLDER_ABSENT: ("run.folder", lambda run: run.folder, _ABSENT),
    UnservedReason.SKILLS_DIR_RELATIVE: ("run.skillsDir", lambda run: run.skills_dir, _RELATIVE),
    UnservedReason.SKILLS_DIR_ABSENT: ("run.skillsDir", lambda run: run.skills_dir, _ABSENT),
    UnservedReason.ZONE_UNKNOWN: (
        "on.tz",
        lambda run: None,
        "and this host's own time zone has no name; write a tz, or set TZ for the worker",
    ),
}


@dataclass(frozen=True, slots=True)
class Unserved:
    """A schedule that stands in the file and is not this host's to keep."""

    id: str
    reason: UnservedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The schedules of one file, in its order."""

    served: tuple[Schedule, ...] = ()
    unserved: tuple[Unserved, ...] = ()


def place(triggers: Triggers, *, fleet_mode: bool, host_zone: str, name: str) -> Placed:
    """Look at the folders of the schedules in the file of this name, as they are now.

    In a fleet another host may have what is absent here. A single host has to serve all: OperatorFileError,
    with every problem.
    """
    found = [(one, _reason(one, host_zone)) for one in triggers.cron]
    problems = list(_problems(found))
    if problems and not fleet_mode:
        raise OperatorFileError(name, problems)
    schedules = [(of_trigger(one, host_zone=host_zone), reason) for one, reason in found]
    return Placed(
        served=tuple(schedule for schedule, reason in schedules if reason is None),
        unserved=tuple(Unserved(schedule.id, reason) for schedule, reason in schedules if reason),
    )


def _reason(trigger: Trigger, host_zone: str) -> UnservedReason | None:
    run, on = trigger.run, trigger.on
    # Only what is served has to have its skills.
    missing = _missing(run.folder or "", *_OF_FOLDER)
    if missing is None and run.skills_dir is not None:
        missing = _missing(run.skills_dir, *_OF_SKILLS_DIR)
    is_told_when = bool(host_zone or (isinstance(on, CronOn) and on.tz))
    return missing if missing or is_told_when else UnservedReason.ZONE_UNKNOWN


def _missing(path: str, relative: UnservedReason, absent: UnservedReason) -> UnservedReason | None:
    if not Path(path).is_absolute():
        return relative
    try:
        return None if Path(path).is_dir() else absent
    except OSError:
        # A folder above may not be looked into, or its server does not answer for it.
        return absent


def _problems(found: Iterable[tuple[Trigger, UnservedReason | None]]) -> Iterator[Problem]:
    for trigger, reason in found:
        if reason is not None:
            field, what, words = _WORDS[reason]
            place = f"{place_of(trigger.index, wire(trigger))}: {field}"
            yield Problem(place, _told(what(trigger.run), words))


def _told(found: str | None, words: str) -> str:
    return f"is {'not set' if found is None else shown(found)}, {words}"
