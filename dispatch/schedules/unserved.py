"""Why a host does not serve a schedule, as a token and in words that name the field and what stands there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dispatch.operator_files.problems import Problem, shown
from dispatch.schedules.definition import MAX_ID_CHARACTERS
from dispatch.triggers.entries import CronOn, Trigger, wire
from dispatch.triggers.parse import place_of


class UnservedReason(StrEnum):
    """Why a host does not serve a schedule."""

    FOLDER_RELATIVE = "folder-relative"
    FOLDER_ABSENT = "folder-absent"
    SKILLS_DIR_RELATIVE = "skills-dir-relative"
    SKILLS_DIR_ABSENT = "skills-dir-absent"
    ZONE_UNKNOWN = "zone-unknown"
    ID_TOO_LONG = "id-too-long"


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


def misplacement(trigger: Trigger, reason: UnservedReason) -> Misplaced:
    """Describe to a person why this entry's schedule is not served."""
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
