"""Which schedules of a file this host can serve: those whose folder it has (Q 10.2)."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from dispatch.operator_files.problems import OperatorFileError
from dispatch.schedules.definition import MAX_ID_CHARACTERS, Schedule, of_trigger
from dispatch.schedules.unserved import Misplaced, Unserved, UnservedReason, misplacement
from dispatch.triggers.entries import CronOn, Trigger, Triggers

_OF_FOLDER = UnservedReason.FOLDER_RELATIVE, UnservedReason.FOLDER_ABSENT
_OF_SKILLS_DIR = UnservedReason.SKILLS_DIR_RELATIVE, UnservedReason.SKILLS_DIR_ABSENT


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
    problems = [misplacement(one, reason).problem for one, reason in found if reason]
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
    return tuple(misplacement(one, reason) for one, reason in found if reason)


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
