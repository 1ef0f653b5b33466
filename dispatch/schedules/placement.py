"""Which schedules of a file this host can serve: those whose folder it has (Q 10.2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from dispatch.operator_files.problems import OperatorFileError, Problem, shown
from dispatch.schedules.definition import MAX_ID_CHARACTERS, Schedule, of_trigger
from dispatch.triggers.entries import CronOn, Trigger, Triggers, wire
from dispatch.triggers.parse import place_of


class UnservedReason(StrEnum):
    """Why a host does not serve a schedule."""

    FOLDER_RELATIVE = "folder-relative"
    FOLDER_ABSENT = "folder-absent"
    SKILLS_DIR_RELATIVE = "skills-dir-relative"
    SKILLS_DIR_ABSENT = "skills-dir-absent"
    ZONE_UNKNOWN = "zone-unknown"
    ID_TOO_LONG = "id-too-long"


_OF_FOLDER = UnservedReason.FOLDER_RELATIVE, UnservedReason.FOLDER_ABSENT
_OF_SKILLS_DIR = UnservedReason.SKILLS_DIR_RELATIVE, UnservedReason.SKILLS_DIR_ABSENT
_RELATIVE = "which is no absolute path; write it from the root of the file system"
_ABSENT = "which is no folder of this host; make it, or correct the path"
_TOO_LONG = f"which no job's id can hold; allowed are {MAX_ID_CHARACTERS} characters"
# The field that is wrong, what stands there, and the words for the person.
_WORDS: Mapping[UnservedReason, tuple[str, Callable[[Trigger], str | None], str]] = {
    UnservedReason.FOLDER_RELATIVE: ("run.folder", lambda one: one.run.folder, _RELATIVE),
    UnservedReason.FOLDER_ABSENT: ("run.folder", lambda one: one.run.folder, _ABSENT),
    UnservedReason.SKILLS_DIR_RELATIVE: ("run.skillsDir", lambda one: one.run.skills_dir, _RELATIVE),
    UnservedReason.SKILLS_DIR_ABSENT: ("run.skillsDir", lambda one: one.run.skills_dir, _ABSENT),
    UnservedReason.ZONE_UNKNOWN: (
        "on.tz",
        lambda _: None,
        "and this host's own time zone has no name; write a tz, or set TZ for the worker",
    ),
    UnservedReason.ID_TOO_LONG: (
        "on.id",
        lambda one: one.on.id if isinstance(one.on, CronOn) else None,
        _TOO_LONG,
    ),
}


@dataclass(frozen=True, slots=True)
class Unserved:
    """A schedule that stands in the file and is not this host's to keep."""

    id: str
    reason: UnservedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """The same for a person: the entry's index, and the problem that it is on a single host.

    `place` is the field and `found` what stands in it, None for nothing.
    """

    index: int
    reason: UnservedReason
    place: str
    found: str | None
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The schedules of one file, in its order."""

    served: tuple[Schedule, ...] = ()
    unserved: tuple[Unserved, ...] = ()


def place(triggers: Triggers, *, fleet_mode: bool, host_zone: str, name: str) -> Placed:
    """Look at the folders of the schedules in the file of this name, as they are now.

    In a fleet another host may have what is absent here. A single host has to serve all: OperatorFileError,
    with every problem. What is served names its folder by the real path, as a job by hand does: that is what
    scopes and pause windows are compared with, and one folder of two names would be two.
    """
    found = [(one, _reason(one, host_zone)) for one in triggers.cron]
    problems = [_misplaced(one, reason).problem for one, reason in found if reason]
    if problems and not fleet_mode:
        raise OperatorFileError(name, problems)
    schedules = [(of_trigger(one, host_zone=host_zone), reason) for one, reason in found]
    return Placed(
        served=tuple(at_its_place(schedule) for schedule, reason in schedules if reason is None),
        unserved=tuple(Unserved(schedule.id, reason) for schedule, reason in schedules if reason),
    )


def misplaced(triggers: Triggers, *, host_zone: str) -> tuple[Misplaced, ...]:
    """Tell which schedules this host cannot serve, as `place` finds them."""
    found = ((one, _reason(one, host_zone)) for one in triggers.cron)
    return tuple(_misplaced(one, reason) for one, reason in found if reason)


def at_its_place(schedule: Schedule) -> Schedule:
    """Name its folder by the real path, as this host's tables do."""
    folder = os.path.realpath(str(schedule.run["folder"]))
    return replace(schedule, run={**schedule.run, "folder": folder})


def _reason(trigger: Trigger, host_zone: str) -> UnservedReason | None:
    run, on = trigger.run, trigger.on
    # Only what is served has to have its skills.
    missing = _missing(run.folder or "", *_OF_FOLDER)
    if missing is None and run.skills_dir is not None:
        missing = _missing(run.skills_dir, *_OF_SKILLS_DIR)
    if missing is not None or not isinstance(on, CronOn):
        return missing
    if len(on.id) > MAX_ID_CHARACTERS:
        return UnservedReason.ID_TOO_LONG
    return None if host_zone or on.tz else UnservedReason.ZONE_UNKNOWN


def _missing(path: str, relative: UnservedReason, absent: UnservedReason) -> UnservedReason | None:
    if not Path(path).is_absolute():
        return relative
    try:
        return None if Path(path).is_dir() else absent
    except OSError:
        # A folder above may not be looked into, or its server does not answer for it.
        return absent


def _misplaced(trigger: Trigger, reason: UnservedReason) -> Misplaced:
    field, what, words = _WORDS[reason]
    place, found = f"{place_of(trigger.index, wire(trigger))}: {field}", what(trigger)
    return Misplaced(
        index=trigger.index,
        reason=reason,
        place=place,
        found=found,
        problem=Problem(place, _told(found, words)),
    )


def _told(found: str | None, words: str) -> str:
    return f"is {'not set' if found is None else shown(found)}, {words}"
