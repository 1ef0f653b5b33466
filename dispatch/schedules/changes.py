"""What is to change in one queue's table of schedules: worked out here, carried out by one script.

Ids and definitions are bytes as they stand in Valkey: what others wrote there has to be told from ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain

from dispatch.instants import epoch_ms
from dispatch.schedules import definition
from dispatch.schedules.definition import Schedule
from dispatch.schedules.notes import fingerprint, read_torn


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A table as it was read: by id the definition, next instant and since when (ms), and notes of tears."""

    definitions: Mapping[bytes, bytes]
    upcoming: Mapping[bytes, float]
    since: Mapping[bytes, bytes]
    torn: Mapping[bytes, bytes]

    @property
    def ids(self) -> set[bytes]:
        """All that stand in any part of it."""
        return {*self.definitions, *self.upcoming, *self.since, *self.torn}


@dataclass(slots=True, kw_only=True)
class Changes:
    """What to write, by id, and `expected`: the definitions that have to stand there still (b'' = none)."""

    expected: dict[bytes, bytes] = field(default_factory=dict)
    definitions: dict[bytes, bytes] = field(default_factory=dict)
    upcoming: dict[bytes, int] = field(default_factory=dict)
    since: dict[bytes, int] = field(default_factory=dict)
    torn: dict[bytes, bytes] = field(default_factory=dict)
    ended: list[bytes] = field(default_factory=list)
    uninstalled: list[bytes] = field(default_factory=list)
    mended: list[bytes] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)

    @property
    def are_none(self) -> bool:
        """Whether the table is as it should be."""
        return not any(self._sections()[1:])

    def arguments(self) -> list[bytes | int]:
        """Write the sections of `apply.lua`."""
        return [value for section in self._sections() for value in (len(section), *section)]

    def _sections(self) -> tuple[list[bytes | int], ...]:
        return (
            _flat(self.expected),
            _flat(self.definitions),
            [value for one, next_ms in self.upcoming.items() for value in (next_ms, one)],
            _flat(self.since),
            _flat(self.torn),
            [*self.ended],
            [*self.uninstalled],
            [*self.mended],
            [*self.removed],
        )


class Timed:
    """A schedule with its next instant after `now`, worked out when it is asked for.

    ValueError for a pattern or zone that this host cannot read.
    """

    def __init__(self, schedule: Schedule, now: datetime) -> None:
        self.schedule = schedule
        self._now = now

    @cached_property
    def next_ms(self) -> int | None:
        """The first instant after now; None when the pattern has ended."""
        found = self.schedule.recurrence().after(self._now)
        return epoch_ms(found) if found else None


def install(changes: Changes, seen: Seen, schedule: Schedule, *, now: datetime) -> bool:
    """Note what brings this schedule into the table; False when it was torn down as it is."""
    one, text = schedule.id.encode(), schedule.text()
    if one in seen.torn:
        tear = read_torn(seen.torn[one])
        if tear and tear.fingerprint == fingerprint(text):
            return False
        changes.mended.append(one)
    standing = seen.definitions.get(one, b"")
    timed = Timed(schedule, now)
    if standing != text.encode():
        changes.expected[one], changes.definitions[one] = standing, text.encode()
        if not _is_timed_alike(standing, schedule):
            changes.since[one] = epoch_ms(now)
            _set_next(changes, one, timed)
            return True
    hasten(changes, seen, one, timed)
    if one not in seen.since:
        changes.since[one] = epoch_ms(now)
    return True


def hasten(changes: Changes, seen: Seen, one: bytes, timed: Timed) -> None:
    """Note what brings the next instant of a schedule no further away than its pattern says.

    It is further away after the clock went back, and then the schedule would stand still for as long.
    """
    standing, right = seen.upcoming.get(one), timed.next_ms
    if standing is None and right is None:
        return
    if standing is None or right is None or standing > right:
        changes.expected.setdefault(one, seen.definitions.get(one, b""))
        _set_next(changes, one, timed)


def prune(changes: Changes, seen: Seen, kept: Iterable[str]) -> None:
    """Note that whatever is not `kept` leaves the table."""
    kept_ids = {one.encode() for one in kept}
    changes.removed = sorted(seen.ids - kept_ids)
    changes.mended = [one for one in changes.mended if one in kept_ids]


def _set_next(changes: Changes, one: bytes, timed: Timed) -> None:
    if timed.next_ms is None:
        changes.ended.append(one)
    else:
        changes.upcoming[one] = timed.next_ms


def _is_timed_alike(standing: bytes, schedule: Schedule) -> bool:
    known = definition.read(standing) if standing else None
    return known is not None and (known.id, known.pattern, known.zone) == (
        schedule.id,
        schedule.pattern,
        schedule.zone,
    )


def _flat(pairs: Mapping[bytes, bytes] | Mapping[bytes, int]) -> list[bytes | int]:
    return list(chain.from_iterable(pairs.items()))


def shown(ids: Iterable[bytes]) -> Iterator[str]:
    """Write ids as text that any terminal takes; of ours nothing changes."""
    return (one.decode("utf-8", "backslashreplace") for one in ids)
