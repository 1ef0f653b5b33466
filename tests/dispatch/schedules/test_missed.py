"""Whether a schedule kept its word, by what is known of its occurrences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dispatch.instants import epoch_ms
from dispatch.schedules.missed import (
    GRACE,
    Fate,
    MissedReason,
    Occurrence,
    Standing,
    Verdict,
    judge,
    last_due,
)
from dispatch.schedules.patterns import Recurrence

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
NOW = epoch_ms(NOON)
MINUTE = 60_000
GRACE_MS = GRACE // timedelta(milliseconds=1)
DUE = NOW - 60 * MINUTE


def at(minutes_ago: int, fate: Fate, why: str | None = None, held: MissedReason | None = None) -> Occurrence:
    return Occurrence(instant_ms=NOW - minutes_ago * MINUTE, fate=fate, why=why, held=held)


def missing(reason: MissedReason, why: str | None = None, minutes_ago: int = 60) -> tuple[object, ...]:
    return Standing.MISSED, NOW - minutes_ago * MINUTE, reason, why


def stands(standing: Standing, minutes_ago: int, why: str | None = None) -> tuple[object, ...]:
    return standing, NOW - minutes_ago * MINUTE, why, why


ENDED, RUNNING, WAITING, SKIPPED = Fate.ENDED, Fate.RUNNING, Fate.WAITING, Fate.SKIPPED
PAUSED, GONE = MissedReason.PAUSED, MissedReason.HOST_GONE
IN_LINE, WINDOW, CAP = MissedReason.IN_LINE, MissedReason.PAUSE_WINDOW, MissedReason.CAP
WAITS = Standing.WAITING
NOTHING = (Standing.NOT_DUE, None, None, None)

# What was due an hour ago (or nothing), what is known, what hinders it, what is told.
TABLE = {
    "nothing was due": (None, [], None, NOTHING),
    "nothing was due, and nobody is there": (None, [], GONE, NOTHING),
    "it became a record": (DUE, [at(60, ENDED)], None, stands(Standing.DONE, 60)),
    "it became one late, as a catch-up": (DUE, [at(30, ENDED)], None, stands(Standing.DONE, 30)),
    "it runs": (DUE, [at(60, RUNNING)], None, stands(Standing.RUNNING, 60)),
    "it ended, the next one runs": (DUE, [at(60, ENDED), at(2, RUNNING)], None, stands(Standing.RUNNING, 2)),
    "its schedule asks for the wait": (DUE, [at(60, WAITING, "wait")], None, stands(WAITS, 60, "wait")),
    "it waits in line": (DUE, [at(60, WAITING, "due", IN_LINE)], None, missing(IN_LINE, "due")),
    "it waits in line, its grace is not over": (
        None,
        [at(4, WAITING, "in-line", IN_LINE)],
        None,
        stands(WAITS, 4, "in-line"),
    ),
    "a window holds it": (
        DUE,
        [at(60, WAITING, "pause-window", WINDOW)],
        PAUSED,
        missing(WINDOW, "pause-window"),
    ),
    "its queue is paused": (
        DUE,
        [at(60, WAITING, "queue-paused", PAUSED)],
        None,
        missing(PAUSED, "queue-paused"),
    ),
    "its queue is paused, its grace is not over": (
        None,
        [at(4, WAITING, "queue-paused", PAUSED)],
        None,
        stands(Standing.WAITING, 4, "queue-paused"),
    ),
    "its grace is over to the ms": (
        DUE,
        [at(5, WAITING, "queue-paused", PAUSED)],
        None,
        missing(PAUSED, "queue-paused", 5),
    ),
    "nothing came of it": (DUE, [], None, missing(MissedReason.UNKNOWN)),
    "nothing came of it, and why": (DUE, [], GONE, missing(GONE)),
    "an older one ended": (DUE, [at(120, ENDED)], None, missing(MissedReason.UNKNOWN)),
    "an older one runs": (DUE, [at(120, RUNNING)], None, missing(MissedReason.UNKNOWN)),
    "an older one waits": (
        DUE,
        [at(120, WAITING, "cap", CAP)],
        None,
        missing(MissedReason.PREVIOUS_WAITS, "cap"),
    ),
    "an older one waits for the pause to end": (
        DUE,
        [at(120, WAITING, "queue-paused", PAUSED)],
        None,
        missing(PAUSED, "queue-paused"),
    ),
    "it was skipped, and what it was skipped for has ended": (
        DUE,
        [at(120, ENDED), at(60, SKIPPED)],
        None,
        missing(MissedReason.PREVIOUS_WAITS),
    ),
    "it was skipped and another host ran it": (
        DUE,
        [at(60, ENDED), at(60, SKIPPED)],
        None,
        stands(Standing.DONE, 60),
    ),
    "nothing was due, an older one ended": (None, [at(120, ENDED)], None, stands(Standing.DONE, 120)),
}


@pytest.mark.parametrize("case", TABLE.values(), ids=list(TABLE))
def test_a_schedule_is_judged_by_the_last_instant_whose_grace_is_over(case):
    due_ms, found, hindered, told = case

    verdict = judge(due_ms, found, now_ms=NOW, hindered=hindered)

    assert verdict == Verdict(standing=told[0], instant_ms=told[1], reason=told[2], why=told[3])
    assert judge(due_ms, reversed(found), now_ms=NOW, hindered=hindered) == verdict
    assert verdict.is_missed is (told[0] is Standing.MISSED)


@pytest.mark.parametrize(
    ("pattern", "since", "found"),
    [
        pytest.param("* * * * * *", timedelta(days=4000), timedelta(0), id="each second"),
        pytest.param("0 * * * *", timedelta(days=1), timedelta(0), id="each hour"),
        pytest.param("30 9 * * *", timedelta(days=90), timedelta(hours=2, minutes=30), id="daily"),
        pytest.param("30 9 * * *", timedelta(hours=2, minutes=30), None, id="put in at its instant"),
        pytest.param("30 9 * * *", timedelta(hours=2), None, id="put in after its instant"),
        pytest.param("0 12 1 1 *", timedelta(days=4000), timedelta(days=68), id="yearly"),
        pytest.param("0 12 29 2 *", timedelta(days=4000), timedelta(days=740), id="on a leap day"),
        pytest.param("0 12 * * *", timedelta(0), None, id="put in now"),
        pytest.param("0 12 * * *", -timedelta(days=1), None, id="put in tomorrow, by a clock that is wrong"),
    ],
)
def test_what_was_due_last(pattern, since, found):
    recurrence = Recurrence.parse(pattern, schedule_id="x", zone="UTC")

    due = last_due(recurrence, since=NOON - since, until=NOON)

    assert due == (None if found is None else NOON - found)
