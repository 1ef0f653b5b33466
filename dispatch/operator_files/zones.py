"""Time zones by name, and the instants at which a zone's clock shows a time, also where it changes.

On those nights a wall time exists twice or not at all. What begins, begins at the first instant at which the
clock shows its time or a later one; what ends, ends at the last at which it could, so that it is never short.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

UTC_ZONE = ZoneInfo("UTC")
DAY = timedelta(days=1)

_SECOND = timedelta(seconds=1)
# In some copies of the zone database; the one means another thing on each machine, the other nothing.
_NO_ZONES = frozenset({"localtime", "Factory"})
# Of the abbreviations of e-mail dates, those that the zone database does not have as names. Others (BST, IST)
# mean different places to different readers.
_ABBREVIATIONS = {"pst": "America/Los_Angeles", "cst": "America/Chicago"}


@dataclass(frozen=True, slots=True)
class Day:
    """A day of a zone's calendar: its midnight on the clock, its weekday (0: Monday), its `YYYY-MM-DD`."""

    midnight: datetime
    weekday: int
    date: str


def zone_named(name: str) -> ZoneInfo | None:
    """Find a zone by its IANA name, aliases included, in any case of letters; None if there is none."""
    found = _names().get(name.lower()) if name.isascii() else None
    return None if found is None else ZoneInfo(found)


def clock_time(instant: datetime, zone: ZoneInfo) -> datetime:
    """Read the zone's clock: a datetime without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None)


@lru_cache(maxsize=2048)
def days_about(today: date, zone: ZoneInfo) -> tuple[tuple[Day, ...], timedelta]:
    """List the days on which something may have begun that goes on today, and by how much the clock changes.

    For what lasts up to a day, or ends by the end of the next. The second is zero unless the zone's offset
    changes within three days.
    """
    midnight = datetime.combine(today, time.min)
    around = [(midnight + DAY * ahead).replace(tzinfo=zone) for ahead in range(-3, 4)]
    offsets = [one.utcoffset() or timedelta() for one in around]
    change = max(offsets) - min(offsets)
    # An end in a gap may lie on the next day, and a clock that is set back may show the day before again.
    mornings = [midnight + DAY * ahead for ahead in (range(-2, 2) if change else range(-1, 1))]
    return tuple(Day(one, one.weekday(), one.date().isoformat()) for one in mornings), change


@lru_cache(maxsize=4096)
def occurrence(
    midnight: datetime, begins: timedelta, ends: timedelta, zone: ZoneInfo
) -> tuple[datetime, datetime]:
    """Give the instants (UTC) from and to which something goes on that is given by the clock.

    `begins` and `ends` count from the midnight of a day; what lasts a whole day ends where the next begins.
    """
    last = _end_of_day_at if ends - begins == DAY else _end_at
    return _begin_at(midnight + begins, zone), last(midnight + ends, zone)


def _begin_at(wall: datetime, zone: ZoneInfo) -> datetime:
    """Give the instant (UTC) at which something begins: the first, or the end of the gap it falls into."""
    first, second = _candidates(wall, zone)
    return first if first <= second else _end_of_gap(second, first, zone)


def _end_at(wall: datetime, zone: ZoneInfo) -> datetime:
    """Give the instant (UTC) at which something ends: the last; in a gap as if the clock had not changed."""
    return max(_candidates(wall, zone))


def _end_of_day_at(midnight: datetime, zone: ZoneInfo) -> datetime:
    """Give the instant (UTC) from which on the clock shows the day that begins at `midnight`."""
    last = _end_at(midnight, zone)
    # A clock that is set back over midnight shows the day before once more, another shows 00:00 twice.
    returns = clock_time(last - _SECOND, zone) < midnight
    return last if returns else _begin_at(midnight, zone)


@cache
def _names() -> Mapping[str, str]:
    """Every known name by its lower-case form; the disk is looked at once in a process."""
    return {name.lower(): name for name in available_timezones() - _NO_ZONES} | _ABBREVIATIONS


def _candidates(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Convert by the offset before a change and by the one after it.

    Where a time exists twice they are in order, where it does not exist the wrong way round, else equal.
    """
    aware = wall.replace(tzinfo=zone)
    return aware.replace(fold=0).astimezone(UTC), aware.replace(fold=1).astimezone(UTC)


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Find the second of the change between an instant before it and one that is not."""
    offset = before.astimezone(zone).utcoffset()
    seconds = range((after - before) // _SECOND + 1)
    return before + _SECOND * bisect_left(
        seconds,
        1,
        key=lambda second: (before + _SECOND * second).astimezone(zone).utcoffset() != offset,
    )
