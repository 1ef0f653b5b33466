"""The periods that rollups are kept for, and which make up a span. Times are hours since 1970, UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_HOUR_MS = 3_600_000
DAY = 24
#: How far back single hours are kept; days and months stay.
HOURS_KEPT = 40 * DAY


class Grain(IntEnum):
    """How long a period is; EVER has one that only grows."""

    EVER = 0
    HOUR = 1
    DAY = 2
    MONTH = 3


@dataclass(frozen=True, slots=True)
class Stretch:
    """Periods of one grain, from the one that begins at `start` up to `end`, which is none of them."""

    grain: Grain
    start: int
    end: int


def hour_of(position_ms: int) -> int:
    """Give the hour of a place in the list of runs."""
    return position_ms // _HOUR_MS


def position_of(hour: int) -> int:
    """Give the first place of an hour in the list of runs, in epoch milliseconds."""
    return hour * _HOUR_MS


def floor_hour(moment: datetime) -> int:
    """Give the hour that the instant is in."""
    return (moment - _EPOCH) // _HOUR


def ceil_hour(moment: datetime) -> int:
    """Give the first hour that begins at the instant or after it."""
    return -((_EPOCH - moment) // _HOUR)


def instant(hour: int) -> datetime:
    """Give the instant at which an hour begins."""
    return _EPOCH + hour * _HOUR


def floor_day(hour: int) -> int:
    """Give the hour at which the hour's day begins."""
    return hour // DAY * DAY


def periods_of(hour: int) -> tuple[tuple[Grain, int], ...]:
    """List the periods that an hour is part of."""
    return ((Grain.HOUR, hour), (Grain.DAY, floor_day(hour)), (Grain.MONTH, _floor_month(hour)))


def hours_kept_from(now: datetime) -> int:
    """Give the first hour that is kept as such; it begins a day."""
    return floor_day(floor_hour(now) - HOURS_KEPT)


def cover(since: int, until: int, *, hours_from: int) -> list[Stretch]:
    """Make up a span of as few periods as there are; where hours are not kept any more, it is of whole days.

    `hours_from` is the first hour that is kept and begins a day.
    """
    if since < hours_from:
        since = floor_day(since)
    if until < hours_from:
        until = _ceil_day(until)
    days_since, days_until = _ceil_day(since), floor_day(until)
    if days_since >= days_until:
        return _present(Stretch(Grain.HOUR, since, until))
    months_since, months_until = _ceil_month(days_since), _floor_month(days_until)
    if months_since >= months_until:
        months_since = months_until = days_until
    return _present(
        Stretch(Grain.HOUR, since, days_since),
        Stretch(Grain.DAY, days_since, months_since),
        Stretch(Grain.MONTH, months_since, months_until),
        Stretch(Grain.DAY, months_until, days_until),
        Stretch(Grain.HOUR, days_until, until),
    )


def _present(*stretches: Stretch) -> list[Stretch]:
    return [stretch for stretch in stretches if stretch.start < stretch.end]


def _floor_month(hour: int) -> int:
    return floor_hour(instant(hour).replace(day=1, hour=0))


def _ceil_day(hour: int) -> int:
    return -(-hour // DAY) * DAY


def _ceil_month(hour: int) -> int:
    # 31 days after a month's first hour at the latest is the next one.
    return hour if _floor_month(hour) == hour else _floor_month(_floor_month(hour) + 31 * DAY)
