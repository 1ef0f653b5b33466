"""Why a schedule that stands in the file is in no table, so that nobody starts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dispatch.console.schedule_states import Hindrance
from dispatch.schedules.missed import MissedReason
from dispatch.schedules.unserved import UnservedReason
from hosts.rows import HostRow

_WHY: Mapping[UnservedReason, str] = {
    UnservedReason.FOLDER_RELATIVE: "its folder is no absolute path",
    UnservedReason.FOLDER_ABSENT: "its folder is not here",
    UnservedReason.SKILLS_DIR_RELATIVE: "its skillsDir is no absolute path",
    UnservedReason.SKILLS_DIR_ABSENT: "its skillsDir is not here",
    UnservedReason.ZONE_UNKNOWN: "this host's time zone has no name",
    UnservedReason.ID_TOO_LONG: "its id is longer than the id of a job can hold",
}


def absence(rows: Sequence[HostRow], unserved: Mapping[str, UnservedReason]) -> Callable[[str], Hindrance]:
    """Explain by the hosts that are there and by what this host cannot serve, for each id."""
    general = _of_fleet(rows)

    def of(schedule_id: str) -> Hindrance:
        why = unserved.get(schedule_id)
        # To start a worker helps only where it can serve it: a single host's would not even start.
        if why and (not rows or general is None or general.reason is MissedReason.NO_FILE):
            return _unserved(why)
        return general or _NOT_INSTALLED

    return of


_NOT_INSTALLED = Hindrance(
    reason=MissedReason.NOT_INSTALLED,
    brief="no worker has taken it over yet",
    remedy="A worker does so within seconds of an edit; its log says what keeps it from that.",
)


def _unserved(why: UnservedReason) -> Hindrance:
    return Hindrance(
        reason=MissedReason.UNSERVED,
        brief=f"unserved: {_WHY[why]}, and no other host has it",
        remedy="Give one host what it needs, or take the entry out.",
    )


def _of_fleet(rows: Sequence[HostRow]) -> Hindrance | None:
    if not rows:
        return Hindrance(
            reason=MissedReason.HOST_GONE,
            brief="no worker is there to take it over",
            remedy="Start one with `manage.py runworker`.",
        )
    if len({row.fp_cron for row in rows if row.fp_cron}) > 1:
        return Hindrance(
            reason=MissedReason.REFUSED,
            brief="hosts have different schedules, and nothing is put in until they agree",
            remedy="Bring the files of PI_TRIGGERS_FILE to the same state; `manage.py fleet` names them.",
        )
    if not any(row.fp_triggers for row in rows):
        return Hindrance(
            reason=MissedReason.NO_FILE,
            brief="no worker has a triggers file",
            remedy="Set PI_TRIGGERS_FILE for the worker, or bring it to this version, and restart it.",
        )
    return None
