"""Turning a due instant of a schedule into a job: enqueued once, and the schedule goes on, in one step.

The job stands in Valkey as `Producer` would have left it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from rq.job import JobStatus

from dispatch.ids import rq_id
from dispatch.queue import keys, queues
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.producer import CRON, new_job, our_fields
from dispatch.queue.scripts import Scripts, Value
from dispatch.schedules import keys as schedule_keys
from hosts import keys as hosts_keys

if TYPE_CHECKING:
    import redis

    from dispatch.jobs import JobData

_MS = timedelta(milliseconds=1)
_OCCURRED_MS = schedule_keys.OCCURRED_TTL // _MS
# A longer gap between two instants, with others in it, is none that anybody caught up with.
_LONGEST_GAP_MS = timedelta(days=1) // _MS


class Turn(StrEnum):
    """What became of a due instant. All but CHANGED went on to the next one.

    EXISTS: it was dealt with, by whichever host. WAITING: the occurrence before still waits on this queue.
    CHANGED: somebody else was faster, or has edited the schedule; nothing was done.
    """

    ENQUEUED = "enqueued"
    EXISTS = "exists"
    WAITING = "waiting"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A schedule as a queue's table had it: `score` is its next instant; both as they stand there."""

    queue: str
    schedule_id: str
    score: bytes
    definition: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """The instant that is acted on, and what follows; times in ms.

    `since_ms` is the first instant that it stands for, `follows` says that this is itself. `next_ms` is None
    when the pattern has ended. `before` is the job of the occurrence before, if one is known.
    """

    job_id: str
    job: JobData = field(repr=False)
    instant_ms: int
    since_ms: int
    follows: bool
    next_ms: int | None
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnNotes:
    """What the table keeps of each way that it may go."""

    enqueued: str
    exists: str
    waiting: str


class Firing:
    """Acts on due instants. Safe for threads; raises redis-py's errors and may be repeated after one."""

    def __init__(self, client: redis.Redis, *, delays: Delays = no_delay) -> None:
        self._client = client
        self._scripts = Scripts(client)
        self._delays = delays

    def fire(self, due: Due, occurrence: Occurrence, notes: TurnNotes, *, now_ms: int) -> Turn:
        """Enqueue the occurrence, unless it exists or the one before waits; either way the schedule goes on.

        ValueError for an id that RQ could not hold.
        """
        raw_id = rq_id(occurrence.job_id).encode()
        self._delays("before fire")
        answer = self._scripts.call(
            "fire",
            self._keys(due, occurrence, raw_id),
            (
                *(due.schedule_id, due.score, due.definition),
                *("" if occurrence.next_ms is None else occurrence.next_ms, due.queue, raw_id),
                *_stretch(occurrence),
                *(notes.enqueued, notes.exists, notes.waiting, now_ms),
                *self._fields(due.queue, occurrence, now_ms),
            ),
        )
        self._delays("after fire")
        return Turn(answer.decode())

    def _keys(self, due: Due, occurrence: Occurrence, raw_id: bytes) -> tuple[str | bytes, ...]:
        names = keys.queue_keys(due.queue)
        before = rq_id(occurrence.before).encode() if occurrence.before else raw_id
        return (
            schedule_keys.upcoming(due.queue),
            schedule_keys.definitions(due.queue),
            schedule_keys.fired(due.queue),
            schedule_keys.occurred(due.schedule_id),
            *(keys.job(raw_id), names.jobs, keys.QUEUES, hosts_keys.QUEUES_KNOWN),
            keys.job(before),
        )

    def _fields(self, queue: str, occurrence: Occurrence, now_ms: int) -> tuple[Value, ...]:
        """Write the hash that RQ's enqueue would write."""
        ours = our_fields(CRON, occurrence.job.scope_hash, (), now_ms)
        made = new_job(queues.rq_queue(self._client, queue), occurrence.job_id, occurrence.job, CRON, ours)
        made.enqueued_at = datetime.now(UTC)
        hash_fields = {**made.to_dict(), "status": JobStatus.QUEUED.value}
        return tuple(part for name, value in hash_fields.items() for part in (name, value))


def _stretch(occurrence: Occurrence) -> tuple[int, ...]:
    earliest = max(occurrence.since_ms, occurrence.instant_ms - _LONGEST_GAP_MS)
    return (
        occurrence.instant_ms,
        earliest,
        int(occurrence.follows),
        _LONGEST_GAP_MS,
        _OCCURRED_MS,
    )
