"""Spend windows: which counter a start falls into, and what a counter says against its cap (Q 6 and 8).

A window is a UTC day, a week from Monday, or a month. The counters stand in Valkey; their names and lifetimes
are here, what reads and writes them is `dispatch.money.ledger`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

GLOBAL_PREFIX = "budget"
# Why a job sleeps where the counters cannot be read.
LEDGER_REFUSED = "ledger-refused"
# What INCR takes for a number, and how long one may be, as in the scripts.
_WHOLE_NUMBER = re.compile(rb"0|-?[1-9][0-9]*")
_LONGEST_COUNT = 16
# A grant is kept as long as the longest counter it may be paid back to.
GRANT_TTL = timedelta(days=40)


class Window(StrEnum):
    """The windows in the order in which they are tested."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class State(StrEnum):
    """What a counter says once the start in question is counted."""

    OK = "ok"
    SOFT_HOLD = "soft-hold"
    OVER = "over"


# Longer than the window, so that a late refund still meets its counter.
COUNTER_TTL: Mapping[Window, timedelta] = {
    Window.DAY: timedelta(days=2),
    Window.WEEK: timedelta(days=9),
    Window.MONTH: timedelta(days=40),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Container starts allowed in each window; None is a window without a limit, 0 or less allows nothing."""

    day: int | None = None
    week: int | None = None
    month: int | None = None

    def active(self) -> tuple[tuple[Window, int], ...]:
        """List the limited windows with their caps, in the order of testing."""
        caps = ((Window.DAY, self.day), (Window.WEEK, self.week), (Window.MONTH, self.month))
        return tuple((window, cap) for window, cap in caps if cap is not None)


def scope_prefix(scope_hash: str) -> str:
    """Begin the counters of one scope; `scope_hash` is the 16 hex digits that stand for it."""
    return f"{GLOBAL_PREFIX}:s:{scope_hash}"


def counter_key(prefix: str, window: Window, now: datetime) -> str:
    """Name the counter that a start at `now` falls into; ValueError for a `now` without a time zone."""
    day = _utc(now).date()
    match window:
        case Window.DAY:
            return f"{prefix}:{day.isoformat()}"
        case Window.WEEK:
            return f"{prefix}:w:{(day - timedelta(days=day.weekday())).isoformat()}"
        case Window.MONTH:
            return f"{prefix}:m:{day.isoformat()[:7]}"


def window_end(window: Window, now: datetime) -> datetime:
    """Tell when the window of `now` turns and counts from 0 again, UTC; ValueError as `counter_key`."""
    midnight = _utc(now).replace(hour=0, minute=0, second=0, microsecond=0)
    match window:
        case Window.DAY:
            return midnight + timedelta(days=1)
        case Window.WEEK:
            return midnight + timedelta(days=7 - midnight.weekday())
        case Window.MONTH:
            return (midnight.replace(day=1) + timedelta(days=31)).replace(day=1)


def token_counter_key(prefix: str, now: datetime) -> str:
    """Name the counter of the tokens that were recorded on `now`'s UTC day."""
    return f"{prefix}:t:{_utc(now).date().isoformat()}"


def grant_key(job_id: str, attempt: int) -> str:
    """Name the reservation of one attempt of a job, by its natural id."""
    return f"{GLOBAL_PREFIX}:r:{job_id}:{attempt}"


def count_of(stored: bytes | None) -> int:
    """Read a counter's text, None for one that is not there: as the server counts it, so "007" is none.

    ValueError for what is no whole number, or longer than any count can become.
    """
    if stored is None:
        return 0
    if len(stored) > _LONGEST_COUNT or not _WHOLE_NUMBER.fullmatch(stored):
        raise ValueError("a spend counter holds no whole number")
    return int(stored)


def hold_above(cap: int, hold_percent: int | None) -> int:
    """Give the count that is still free of the soft hold; beyond it starts are held. Without one, the cap."""
    return cap if hold_percent is None else cap * hold_percent // 100


def state_of(reserved: int, *, cap: int, hold_percent: int | None = None) -> State:
    """Judge a counter that already counts the start in question."""
    if reserved > cap:
        return State.OVER
    return State.SOFT_HOLD if reserved > hold_above(cap, hold_percent) else State.OK


def tokens_are_spent(recorded: int | None, *, cap: int | None) -> bool:
    """Tell whether the day's tokens (None before the first) have reached their cap, if there is one."""
    return cap is not None and (recorded or 0) >= cap


def _utc(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise ValueError("a window needs an instant with a time zone")
    return now.astimezone(UTC)
