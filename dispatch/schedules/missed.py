"""Whether a schedule kept its word: what became of its last due occurrence, and why nothing did.

An occurrence that has not become a record by its instant plus `GRACE` is missed, unless it runs, or waits for
the conditions that its schedule asks for: silence is an alarm, whatever keeps a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

GRACE = timedelta(minutes=5)
_GRACE_MS = GRACE // timedelta(milliseconds=1)
# Further and further back, so that a pattern of each second is not walked through for years. There can be
# eight between two 29ths of February.
_LOOKS = tuple(timedelta(hours=hours) for hours in (24, 24 * 32, 24 * 370, 24 * 366 * 9))


class MissedReason(StrEnum):
    """Why no record came of an occurrence; the first that is known, in this order."""

    TORN_DOWN = "torn-down"
    PAUSED = "paused"
    HOST_GONE = "host-gone"
    DRAINING = "draining"
    ENGINE_SILENT = "engine-silent"
    NO_FILE = "no-triggers-file"
    REFUSED = "refused"
    UNSERVED = "unserved"
    NOT_INSTALLED = "not-installed"
    PREVIOUS_WAITS = "previous-waits"
    # What its own job waits for: the tokens of `why`.
    PAUSE_WINDOW = "pause-window"
    CAP = "cap"
    SCOPE_BUSY = "scope-busy"
    SCOPE_BUSY_FLEET = "scope-busy-fleet"
    RETRY = "retry"
    IN_LINE = "in-line"
    BEING_CHECKED = "being-checked"
    UNKNOWN = "unknown"


# What holds up every job of a queue, the next one of a schedule as well as its last.
_OF_QUEUE = frozenset(
    {MissedReason.PAUSED, MissedReason.HOST_GONE, MissedReason.DRAINING, MissedReason.ENGINE_SILENT}
)


class Fate(StrEnum):
    """What is known of one occurrence; `skipped`: its turn came while the one before still waited."""

    ENDED = "ended"
    RUNNING = "running"
    WAITING = "waiting"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One occurrence that left a trace, at its instant (ms).

    `why` is the token that a waiting one waits for, `held` the reason for which it is missed when its grace
    is over; None: it waits for what its schedule asks for.
    """

    instant_ms: int
    fate: Fate
    why: str | None = None
    held: MissedReason | None = None


class Standing(StrEnum):
    """How a schedule stands. `not-due`: nothing was due yet since it was put in."""

    NOT_DUE = "not-due"
    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    MISSED = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a schedule stands, by the occurrence of `instant_ms` (None: there was none).

    `reason` is a `MissedReason`, or the token that a waiting job waits for. `why` is that token also where
    something is missed because a job waits.
    """

    standing: Standing
    instant_ms: int | None = None
    reason: str | None = None
    why: str | None = None

    @property
    def is_missed(self) -> bool:
        """Whether a person should look after it."""
        return self.standing is Standing.MISSED


class Instants(Protocol):
    """A recurrence."""

    def last_passed(self, after: datetime, until: datetime) -> tuple[datetime | None, int]:
        """Find the latest instant in (after, until]."""


def last_due(instants: Instants, *, since: datetime, until: datetime) -> datetime | None:
    """Find the latest instant after `since` and not after `until`; both aware. None when there is none."""
    for look in _LOOKS:
        after = max(since, until - look)
        found = instants.last_passed(after, until)[0] if after < until else None
        if found is not None or after == since:
            return found
    return None


def judge(
    due_ms: int | None, found: Iterable[Occurrence], *, now_ms: int, hindered: MissedReason | None = None
) -> Verdict:
    """Judge by the latest instant whose grace is over (None: no such) and what is known of occurrences.

    A later occurrence speaks for the schedule too, as after a catch-up. `hindered` is what keeps the schedule
    itself from being acted on, where that is known.
    """
    known = sorted(found, key=lambda one: one.instant_ms)
    there = [one for one in known if one.fate is not Fate.SKIPPED]
    newest = there[-1] if there else None
    if newest and (due_ms is None or newest.instant_ms >= due_ms):
        return _of(newest, now_ms)
    if due_ms is None:
        return Verdict(standing=Standing.NOT_DUE)
    if newest and newest.fate is Fate.WAITING:
        of_both = newest.held if newest.held in _OF_QUEUE else None
        return _missed(due_ms, of_both or MissedReason.PREVIOUS_WAITS, newest.why)
    if any(one.instant_ms >= due_ms for one in known):
        return _missed(due_ms, MissedReason.PREVIOUS_WAITS)
    return _missed(due_ms, hindered or MissedReason.UNKNOWN)


def _of(one: Occurrence, now_ms: int) -> Verdict:
    if one.fate is Fate.ENDED:
        return Verdict(standing=Standing.DONE, instant_ms=one.instant_ms)
    if one.fate is Fate.RUNNING:
        return Verdict(standing=Standing.RUNNING, instant_ms=one.instant_ms)
    if one.held and one.instant_ms + _GRACE_MS <= now_ms:
        return _missed(one.instant_ms, one.held, one.why)
    return Verdict(standing=Standing.WAITING, instant_ms=one.instant_ms, reason=one.why, why=one.why)


def _missed(instant_ms: int, reason: MissedReason, why: str | None = None) -> Verdict:
    return Verdict(standing=Standing.MISSED, instant_ms=instant_ms, reason=reason, why=why)
