"""What is to change in one queue's table of schedules: worked out here, carried out by one script.

Ids and definitions are bytes as they stand in Valkey: what others wrote there has to be told from ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from dispatch.instants import epoch_ms
from dispatch.schedules.definition import Schedule
from dispatch.schedules.notes import fingerprint, read_torn, whole_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A table as it was read: by id the definition, next instant and since when (ms), and notes of tears.

    `fired`, notes of what was acted on, is of a table that the schedules were in before.
    """

    definitions: Mapping[bytes, bytes]
    upcoming: Mapping[bytes, float]
    since: Mapping[bytes, bytes]
    torn: Mapping[bytes, bytes]
    fired: Mapping[bytes, bytes] = field(default_factory=dict)

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
    fired: dict[bytes, bytes] = field(default_factory=dict)
    ended: list[bytes] = field(default_factory=list)
    uninstalled: list[bytes] = field(default_factory=list)
    mended: list[bytes] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)
    # Notes of `keys.fired` that go, if they are these still.
    forgotten: dict[bytes, bytes] = field(default_factory=dict)

    @property
    def are_none(self) -> bool:
        """Whether the table is as it should be."""
        return not any(self._sections()[1:])

    def arguments(self) -> list[bytes | int]:
        """Write the sections of `apply.lua`."""
        return [value for section in self._sections() for value in (len(section), *section)]

    def set_next(self, one: bytes, next_ms: int | None) -> None:
        """Note the next instant of a schedule; None: there is none."""
        if next_ms is None:
            self.ended.append(one)
        else:
            self.upcoming[one] = next_ms

    def _sections(self) -> tuple[list[bytes | int], ...]:
        return (
            _flat(self.expected),
            _flat(self.definitions),
            [value for one, next_ms in self.upcoming.items() for value in (next_ms, one)],
            _flat(self.since),
            _flat(self.torn),
            _flat(self.fired),
            [*self.ended],
            [*self.uninstalled],
            [*self.mended],
            [*self.removed],
            _flat(self.forgotten),
        )


class Instants:
    """The next instants of schedules, each worked out once for as long as it is the next."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], tuple[int, int | None]] = {}

    def after(self, schedule: Schedule, now: datetime) -> int | None:
        """Give the first instant after `now` in ms; None when there is none.

        ValueError for a pattern or zone that this host cannot read.
        """
        now_ms = epoch_ms(now)
        one = (schedule.id, schedule.pattern, schedule.zone)
        asked_ms, next_ms = self._known.get(one, (now_ms + 1, None))
        if not asked_ms <= now_ms < (now_ms + 1 if next_ms is None else next_ms):
            found = schedule.recurrence().after(now)
            next_ms = epoch_ms(found) if found else None
            self._known[one] = now_ms, next_ms
        return next_ms

    def forget_others(self, schedules: Iterable[Schedule]) -> None:
        """Keep what is known of these only."""
        kept = {(one.id, one.pattern, one.zone) for one in schedules}
        self._known = {one: known for one, known in self._known.items() if one in kept}


def install(
    changes: Changes,
    seen: Seen,
    schedule: Schedule,
    instants: Instants,
    *,
    now: datetime,
    former: Iterable[Seen] = (),
) -> bool:
    """Note what brings this schedule into the table; False when it was torn down as it is.

    What is not here goes on as in one of the `former` tables. ValueError for a pattern or zone that this host
    cannot read.
    """
    one, text = schedule.id.encode(), schedule.text()
    if one in seen.torn:
        tear = read_torn(seen.torn[one])
        if tear and tear.fingerprint == fingerprint(text):
            return False
        changes.mended.append(one)
    standing = seen.definitions.get(one, b"")
    next_ms = instants.after(schedule, now)
    if standing != text.encode():
        changes.expected[one], changes.definitions[one] = standing, text.encode()
        if not _is_timed_alike(standing, schedule):
            since_ms, due_ms = (None, None) if standing else _before(former, one, schedule)
            changes.since[one] = epoch_ms(now) if since_ms is None else since_ms
            changes.set_next(one, min((ms for ms in (due_ms, next_ms) if ms is not None), default=None))
            return True
    hasten(changes, seen, one, next_ms)
    if one not in seen.since:
        changes.since[one] = epoch_ms(now)
    return True


def hasten(changes: Changes, seen: Seen, one: bytes, next_ms: int | None) -> None:
    """Note what brings the next instant of a schedule no further away than the pattern says: `next_ms`.

    It is further away after the clock went back, and then the schedule would stand still for as long.
    """
    standing = seen.upcoming.get(one)
    if standing is None and next_ms is None:
        return
    if standing is None or next_ms is None or standing > next_ms:
        changes.expected.setdefault(one, seen.definitions.get(one, b""))
        changes.set_next(one, next_ms)


def prune(changes: Changes, seen: Seen, kept: Iterable[str]) -> None:
    """Note that whatever is not `kept` leaves the table."""
    kept_ids = {one.encode() for one in kept}
    changes.removed = sorted(seen.ids - kept_ids)
    changes.mended = [one for one in changes.mended if one in kept_ids]


def _before(former: Iterable[Seen], one: bytes, schedule: Schedule) -> tuple[int | None, int | None]:
    """Give since when it counts, and its next instant (ms), as far as a former table has them."""
    for table in former:
        if _is_timed_alike(table.definitions.get(one, b""), schedule):
            return whole_ms(table.since.get(one)), whole_ms(table.upcoming.get(one))
    return None, None


def _is_timed_alike(standing: bytes, schedule: Schedule) -> bool:
    """Compare what decides when it fires, and nothing else: its job may be one that we cannot read."""
    try:
        known = json.loads(standing)
    except (ValueError, RecursionError):
        return False
    timing = {"id": schedule.id, "pattern": schedule.pattern, "zone": schedule.zone}
    return isinstance(known, dict) and timing.items() <= known.items()


def _flat(pairs: Mapping[bytes, bytes] | Mapping[bytes, int]) -> list[bytes | int]:
    return list(chain.from_iterable(pairs.items()))


def shown(ids: Iterable[bytes]) -> Iterator[str]:
    """Write ids as text that any terminal takes; of ours nothing changes."""
    return (one.decode("utf-8", "backslashreplace") for one in ids)
