"""Time zones by name, and the instants at which a zone's clock shows a time, also where it changes.

On those nights a wall time exists twice or not at all. What begins, begins at the first instant at which the
clock shows its time or a later one; what ends, ends at the last at which it could, so that it is never short.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

UTC_ZONE = ZoneInfo("UTC")

_SECOND = timedelta(seconds=1)
# In some copies of the zone database; the one means another thing on each machine, the other nothing.
_NO_ZONES = frozenset({"localtime", "Factory"})
# Of the abbreviations of e-mail dates, those that the zone database does not have as names. Others (BST, IST)
# mean different places to different readers.
_ABBREVIATIONS = {"pst": "America/Los_Angeles", "cst": "America/Chicago"}


def zone_named(name: str) -> ZoneInfo | None:
    """Find a zone by its IANA name, aliases included, in any case of letters; None if there is none."""
    found = _names().get(name.lower()) if name.isascii() else None
    return None if found is None else ZoneInfo(found)


def clock_time(instant: datetime, zone: ZoneInfo) -> datetime:
    """Read the zone's clock: a datetime without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None)


def begin_at(wall: datetime, zone: ZoneInfo) -> datetime:
    """Give the instant (UTC) at which something begins: the first, or the end of the gap it falls into."""
    first, second = _candidates(wall, zone)
    return first if first <= second else _end_of_gap(second, first, zone)


def end_at(wall: datetime, zone: ZoneInfo) -> datetime:
    """Give the instant (UTC) at which something ends: the last; in a gap as if the clock had not changed."""
    return max(_candidates(wall, zone))


def end_of_day_at(midnight: datetime, zone: ZoneInfo) -> datetime:
    """Give the instant (UTC) from which on the clock shows the day that begins at `midnight`."""
    last = end_at(midnight, zone)
    # A clock that is set back over midnight shows the day before once more, another shows 00:00 twice.
    returns = clock_time(last - _SECOND, zone) < midnight
    return last if returns else begin_at(midnight, zone)


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
