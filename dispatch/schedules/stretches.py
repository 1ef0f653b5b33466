"""Stretches of time in which a zone's clock runs evenly: between two changes, never across a year's end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
# The calendar of Python ends at 9999, and a clock may be a day off.
_YEARS = range(2, 9999)


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `start` to before `end` (UTC, naive) the clock is `offset` ahead of UTC; until then `before`."""

    start: datetime
    end: datetime
    offset: timedelta
    before: timedelta

    def first_wall(self, *, elapsed: bool) -> datetime:
        """Give the first time on the clock that belongs here.

        By elapsed time that is what the clock shows at the start. For times of the clock it is what the clock
        would have shown unchanged: so what a gap left out falls here, and what has been does not come again.
        """
        return self.start + (self.offset if elapsed else self.before)

    def end_wall(self) -> datetime:
        """Give the time on the clock that this stretch does not reach."""
        return self.end + self.offset


def stretches_from(zone: ZoneInfo, instant: datetime) -> Iterator[Stretch]:
    """Give the stretch that the instant (UTC, naive) lies in, and those that follow."""
    for year in range(max(instant.year, _YEARS.start), _YEARS.stop):
        for stretch in _of_year(zone, year):
            if instant < stretch.end:
                yield stretch


@lru_cache(maxsize=4096)
def _of_year(zone: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    start, end = (datetime.combine(date(one, 1, 1), time.min) for one in (year, year + 1))
    days = [start + _DAY * day for day in range((end - start).days + 1)]
    offsets = [_offset(zone, day) for day in days]
    found: list[Stretch] = []
    begun, before = start, _offset(zone, start - _SECOND)
    for (morning, offset), (next_morning, next_offset) in pairwise(zip(days, offsets, strict=True)):
        if offset != next_offset:
            change = _change(zone, morning, next_morning)
            found.append(Stretch(begun, change, offset, before))
            begun, before = change, offset
    # A change at the very end of the year belongs to the next one.
    if begun < end:
        found.append(Stretch(begun, end, _offset(zone, end - _SECOND), before))
    return tuple(found)


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return zone.fromutc(instant.replace(tzinfo=zone)).replace(tzinfo=None) - instant


def _change(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """Find the second at which the offset becomes another."""
    before = _offset(zone, low)
    seconds = range((high - low) // _SECOND + 1)
    return low + _SECOND * bisect_left(seconds, 1, key=lambda n: _offset(zone, low + _SECOND * n) != before)
