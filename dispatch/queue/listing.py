"""The jobs of a queue at one instant: what runs, waits in line, sleeps, or is held by a condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dispatch.queue import keys
from dispatch.queue.entries import NAMES, Entry, beats_of, read_entry
from dispatch.queue.scripts import Scripts
from dispatch.queue.waiters import WaitReason

if TYPE_CHECKING:
    import redis

# More than the workers of a fleet run at once.
_ALL_RUNNING = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The first of the jobs that stand alike, and how many those are."""

    total: int = 0
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One queue at `now_ms` of Valkey's clock; each job stands in one section.

    `running`: in hand or started, the longest first. `waiting`: in the order of being taken. `deferred`: the
    first to wake first. `held`: asleep until a condition is met, first queued first. `beats`: boot to its
    last beat (ms), of all that take from the queue.
    """

    queue: str
    now_ms: int
    beats: Mapping[str, int]
    running: Section
    waiting: Section
    deferred: Section
    held: Section


def read_queue(client: redis.Redis, queue: str, *, limit: int) -> Listing:
    """Read one queue in one step, at most `limit` jobs of each section."""
    return _read(client, queue, running=limit, others=limit)


def read_running(client: redis.Redis, queue: str) -> tuple[Entry, ...]:
    """Read every job of the queue that runs or is in hand."""
    return _read(client, queue, running=_ALL_RUNNING, others=0).running.entries


def _read(client: redis.Redis, queue: str, *, running: int, others: int) -> Listing:
    names = keys.queue_keys(queue)
    now_ms, beats, *sections = Scripts(client).call(
        "listing",
        (names.jobs, names.scheduled, names.started, names.takers, keys.waiters(queue, WaitReason.WAIT)),
        (queue, keys.JOB, running, others, *NAMES),
    )
    runs, waits, sleeps, is_held = (_section(queue, *section) for section in sections)
    longest_first = sorted(runs.entries, key=lambda one: one.since_ms or now_ms)
    return Listing(
        queue=queue,
        now_ms=now_ms,
        beats=beats_of(beats),
        running=Section(total=runs.total, entries=tuple(longest_first)),
        waiting=waits,
        deferred=sleeps,
        held=is_held,
    )


def _section(queue: str, total: int, rows: list[list[Any]]) -> Section:
    return Section(
        total=total,
        entries=tuple(
            read_entry(queue, raw_id, values, position=place or None) for raw_id, place, *values in rows
        ),
    )
