"""Bringing work into a queue, once: an id that exists, waiting, running or kept, is not enqueued again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from rq.exceptions import DuplicateJobError

from dispatch.ids import rq_id
from dispatch.jobs import CALLABLE, encode
from dispatch.queue import queues
from dispatch.queue.states import State, look
from hosts import capabilities
from hosts import keys as hosts_keys
from pidispatch_site.errors import OperationalError

if TYPE_CHECKING:
    from collections.abc import Collection

    import redis
    from rq import Queue

    from dispatch.jobs import JobData

_DAY = 24 * 3600
# RQ never judges our jobs' time: the worker's own limit does (Q 18, row 11).
_NO_TIMEOUT = -1
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How often a job may be tried and how long its id is known after its end (Q 2.4), in seconds."""

    attempts: int
    finished_seconds: int
    failed_seconds: int


LOCAL = Keeping(attempts=2, finished_seconds=_DAY, failed_seconds=7 * _DAY)
FORGE = Keeping(attempts=2, finished_seconds=31 * _DAY, failed_seconds=31 * _DAY)
CRON = Keeping(attempts=1, finished_seconds=_DAY, failed_seconds=7 * _DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """The job waits in the queue since this instant of Valkey's clock."""

    first_queued_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists:
    """The id is known already: in this state, on this queue. Nothing was changed."""

    state: State
    queue: str


class Producer:
    """Enqueues jobs. Safe for threads; `client` fails fast, its faults are raised as they are."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._queues: dict[str, Queue] = {}

    def enqueue(
        self,
        queue: str,
        job_id: str,
        job: JobData,
        *,
        keeping: Keeping = LOCAL,
        scope_hash: str | None = None,
        needs: Collection[str] = (),
    ) -> Enqueued | Exists:
        """Put the job at the back of the queue under its natural id, unless the id exists.

        `needs` are capabilities that were asked for beside what the job's own data needs.
        An enqueue whose answer was lost may be repeated: it answers Exists then. ValueError for an id that RQ
        could not hold.
        """
        for _ in range(_TRIES):
            now_ms = self._introduce(queue)
            ours = our_fields(keeping, scope_hash, needs, now_ms)
            try:
                self._add(queue, job_id, job, keeping, ours)
            except DuplicateJobError:
                standing = look(self._client, job_id)
                if standing:
                    return Exists(state=standing.state, queue=standing.queue)
                # It was dropped, or its time was up, between the two looks.
                continue
            return Enqueued(first_queued_ms=now_ms)
        raise OperationalError(f"job {job_id} is added and removed by others at the same time; try again")

    def _introduce(self, queue: str) -> int:
        """Make the queue known to whoever pauses and counts, and answer Valkey's time in ms."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.time()
        pipeline.sadd(hosts_keys.QUEUES_KNOWN, queue)
        (seconds, micros), _ = pipeline.execute()
        return int(seconds) * 1000 + int(micros) // 1000

    def _add(
        self, name: str, job_id: str, job: JobData, keeping: Keeping, ours: dict[str, str | int]
    ) -> None:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = queues.rq_queue(self._client, name)
        rq_job = new_job(queue, job_id, job, keeping, ours)
        queue.enqueue_job(rq_job, unique=True)


def new_job(
    queue: Queue, job_id: str, job: JobData, keeping: Keeping, ours: dict[str, str | int]
) -> queues.DispatchJob:
    """Make RQ's object of a job that has yet to be stored; ValueError for an id that RQ could not hold."""
    encoded = rq_id(job_id)
    made = cast(
        "queues.DispatchJob",
        queue.create_job(
            CALLABLE,
            kwargs={"job": encode(job)},
            job_id=encoded,
            timeout=_NO_TIMEOUT,
            result_ttl=keeping.finished_seconds,
            failure_ttl=keeping.failed_seconds,
            # RQ logs it and its tools show it: nothing but the id.
            description=encoded,
        ),
    )
    made.ours = ours
    return made


def our_fields(
    keeping: Keeping, scope_hash: str | None, needs: Collection[str], now_ms: int
) -> dict[str, str | int]:
    """Say what the hash of a job has beside RQ's own fields when it enters its queue."""
    ours: dict[str, str | int] = {
        "attempt": 0,
        "attempts": keeping.attempts,
        "putBacks": 0,
        "firstQueued": now_ms,
    }
    if scope_hash:
        ours["scope"] = scope_hash
    if needs:
        ours["needs"] = capabilities.published(needs)
    return ours
