"""Turning a due instant of a schedule into a job: enqueued once, and the schedule goes on, in one step.

The job stands in Valkey as `Producer` would have left it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rq.job import JobStatus

from dispatch.ids import rq_id
from dispatch.queue import keys, queues
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.new_jobs import CRON, new_job, our_fields
from dispatch.queue.scripts import Value, text_of
from dispatch.schedules import keys as schedule_keys
from hosts import keys as hosts_keys

if TYPE_CHECKING:
    import redis

    from dispatch.jobs import JobData

_MS = timedelta(milliseconds=1)
_OCCURRED_MS = schedule_keys.OCCURRED_TTL // _MS
# A longer gap between two instants, with others in it, is none that anybody caught up with.
_LONGEST_GAP_MS = timedelta(days=1) // _MS
# Further ahead than this no clock was that anybody let fire.
_AHEAD_MS = timedelta(days=7) // _MS


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


@dataclass(frozen=True, slots=True)
class Shot:
    """A due instant, ready to be acted on."""

    keys: tuple[str | bytes, ...] = field(repr=False)
    arguments: tuple[Value, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Landed:
    """What became of it. Not `is_sound`: what Valkey had of earlier instants could not be, and is gone."""

    turn: Turn
    is_sound: bool = True


class Firing:
    """Acts on due instants. Safe for threads; what it does may be repeated after an error."""

    def __init__(self, client: redis.Redis, *, delays: Delays = no_delay) -> None:
        self._client = client
        self._fire = client.register_script(text_of("fire"))
        self._delays = delays

    def aim(self, due: Due, occurrence: Occurrence, notes: TurnNotes, *, now_ms: int) -> Shot:
        """Make ready what `fire` is to do; ValueError for an id that RQ could not hold."""
        raw_id = rq_id(occurrence.job_id).encode()
        return Shot(
            self._keys(due, occurrence, raw_id),
            (
                *(due.schedule_id, due.score, due.definition),
                *("" if occurrence.next_ms is None else occurrence.next_ms, due.queue, raw_id),
                *_stretch(occurrence),
                *(notes.enqueued, notes.exists, notes.waiting, now_ms, now_ms + _AHEAD_MS),
                *self._fields(due.queue, occurrence, now_ms),
            ),
        )

    def fire(self, shots: Sequence[Shot]) -> list[Landed | Exception]:
        """Enqueue each occurrence, unless it exists or the one before waits; the schedules go on.

        All in one round trip, but each for itself: in the place of one that failed stands redis-py's error.
        Raises redis-py's errors when the server is away.
        """
        if not shots:
            return []
        self._delays("before fire")
        with self._client.pipeline(transaction=False) as pipeline:
            for shot in shots:
                self._fire(keys=shot.keys, args=shot.arguments, client=pipeline)
            found = pipeline.execute(raise_on_error=False)
        self._delays("after fire")
        return [_landed(answer) for answer in found]

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


def _landed(answer: Any) -> Landed | Exception:
    if isinstance(answer, Exception):
        return answer
    turn, is_unsound = answer
    return Landed(Turn(turn.decode()), is_sound=not is_unsound)


def _stretch(occurrence: Occurrence) -> tuple[int, ...]:
    earliest = max(occurrence.since_ms, occurrence.instant_ms - _LONGEST_GAP_MS)
    return (
        occurrence.instant_ms,
        earliest,
        int(occurrence.follows),
        _LONGEST_GAP_MS,
        _OCCURRED_MS,
    )
