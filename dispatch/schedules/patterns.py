"""When a cron pattern fires: instants in UTC, also on the nights on which a zone's clock changes (D5).

A pattern with `*` or `/` in its minute or hour field goes by elapsed time: it fires whenever the clock
shows a time of it, twice where the clock shows it twice. Any other names times of the clock, and each comes
once: in an overlap the first of the two, and what a gap left out at the first instant after the gap.

cronsim looks for times on a clock that never changes; the zone's changes are laid over it here.
"""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from dispatch.operator_files.problems import shown
from dispatch.operator_files.zones import zone_named
from dispatch.schedules.expanding import expand
from dispatch.schedules.pattern_fields import PatternError
from dispatch.schedules.stretches import Stretch, stretches_from

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_ANY_TIME = datetime.combine(date(2000, 1, 1), time.min)
# Beyond it an instant is forgotten: a leap day returns after 8 years at most.
LOOKS_BACK = timedelta(days=3660)


def problem_of(pattern: str, *, schedule_id: str, tz: str | None) -> str | None:
    """Say what is wrong with a pattern or its zone, for the person who wrote it; None for what will fire.

    The text goes on where the pattern's name or place stands: `has '61' in its minute field; allowed is ...`.
    """
    try:
        Recurrence.parse(pattern, schedule_id=schedule_id, zone="UTC" if tz is None else tz)
    except PatternError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The instants of one pattern in one zone."""

    zone: ZoneInfo
    elapsed: bool
    _walls: _Walls

    @classmethod
    def parse(cls, pattern: str, *, schedule_id: str, zone: str) -> Recurrence:
        """Read a pattern, `H` by the id of the schedule. ValueError with the text of `problem_of`."""
        return _parsed(pattern, schedule_id, zone)

    def after(self, instant: datetime) -> datetime | None:
        """Give the first instant strictly after an aware one, in UTC; None if there is none in 50 years."""
        now = _plain(instant)
        found = searched = None
        for stretch in stretches_from(self.zone, now):
            low = self._before_first(stretch, now)
            if found is None or searched is None or not searched <= low < found:
                found, searched = self._walls.after(low), low
            if found is None:
                return None
            if found < stretch.end_wall():
                return _instant(found, stretch)
        return None

    def last_passed(self, after: datetime, until: datetime) -> tuple[datetime | None, int]:
        """Give the latest instant in (after, until], in UTC, and how many lie there; (None, 0) for none.

        The number is exact and costs a step a day, not one an instant. What lies more than LOOKS_BACK before
        `until` is neither found nor counted.
        """
        end = _plain(until)
        begin = max(_plain(after), end - LOOKS_BACK)
        latest, number = None, 0
        for stretch in stretches_from(self.zone, begin):
            if stretch.start > end:
                break
            low = self._before_first(stretch, begin)
            high = min(end + stretch.offset, stretch.end_wall() - _SECOND)
            if there := self._walls.count(low, high):
                number += there - self._merged(low, stretch, high)
                latest = _instant(self._walls.at_or_before(high), stretch)
        return latest, number

    def _before_first(self, stretch: Stretch, now: datetime) -> datetime:
        """Give the time on the clock after which those of a stretch begin that are not past."""
        first = stretch.first_wall(elapsed=self.elapsed) - _SECOND
        # Before its start a clock of its offset shows a time that a gap leaves out, and that is to come.
        return first if now < stretch.start else max(now + stretch.offset, first)

    def _merged(self, low: datetime, stretch: Stretch, high: datetime) -> int:
        """Count the times that a gap left out and that fall together with another."""
        after_gap = min(stretch.start + stretch.offset, high)
        return max(self._walls.count(low, after_gap) - 1, 0) if low < after_gap else 0


# Of one that is due it is asked several times in a row, of a few hundred at once.
@lru_cache(maxsize=256)
def _parsed(pattern: str, schedule_id: str, zone: str) -> Recurrence:
    found = expand(pattern, schedule_id=schedule_id)
    clock = zone_named(zone)
    if clock is None:
        raise PatternError(f"has the zone {shown(zone)}; allowed is a name like Europe/Paris or UTC")
    return Recurrence(clock, found.elapsed, _Walls.parse(found.text))


def _plain(instant: datetime) -> datetime:
    """Write an aware instant as naive UTC; what is less than a second is cut off."""
    return instant.astimezone(UTC).replace(tzinfo=None, microsecond=0)


def _instant(wall: datetime, stretch: Stretch) -> datetime:
    """Read a time on the clock; one that a gap left out is the end of the gap."""
    return max(wall - stretch.offset, stretch.start).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Walls:
    """The times of a pattern on a clock that never changes; `low` is always exclusive, `high` inclusive."""

    sim: CronSim
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> _Walls:
        try:
            sim = CronSim(text, _ANY_TIME)
        except CronSimError as error:
            raise PatternError(f"comes to {shown(text)}, which cronsim does not read") from error
        return cls(sim, *(tuple(sorted(field)) for field in (sim.seconds, sim.minutes, sim.hours)))

    def after(self, low: datetime) -> datetime | None:
        try:
            return next(self._at(low, 1))
        except (StopIteration, OverflowError):
            return None

    def at_or_before(self, high: datetime) -> datetime:
        """Give the last time; there has to be one."""
        return next(self._at(high + _SECOND, -1))

    def count(self, low: datetime, high: datetime) -> int:
        if low >= high:
            return 0
        days = (high.date() - low.date()).days
        whole = len(self.hours) * len(self.minutes) * len(self.seconds)
        number = sum(whole for day in range(days) if self._has(low.date() + _DAY * day))
        return number + self._until(high) - self._until(low)

    def _at(self, wall: datetime, direction: int) -> CronSim:
        sim = copy.copy(self.sim)
        sim.dt, sim.tick_direction = wall, direction
        return sim

    def _has(self, day: date) -> bool:
        return day.month in self.sim.months and self.sim.match_day(day)

    def _until(self, wall: datetime) -> int:
        """Count the times of a day up to and including this one."""
        if not self._has(wall.date()):
            return 0
        number = bisect_left(self.hours, wall.hour) * len(self.minutes) * len(self.seconds)
        if _holds(self.hours, wall.hour):
            number += bisect_left(self.minutes, wall.minute) * len(self.seconds)
            if _holds(self.minutes, wall.minute):
                number += bisect_right(self.seconds, wall.second)
        return number


def _holds(values: Sequence[int], value: int) -> bool:
    return value in values
