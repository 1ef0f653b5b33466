"""Bringing work into a queue, once: an id that exists, waiting, running or kept, is not enqueued again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from rq.exceptions import DuplicateJobError

from dispatch.queue import queues
from dispatch.queue.new_jobs import LOCAL, Keeping, new_job, our_fields
from dispatch.queue.states import State, look
from hosts import keys as hosts_keys
from pidispatch_site.errors import OperationalError

if TYPE_CHECKING:
    from collections.abc import Collection

    import redis

    from dispatch.jobs import JobData

_TRIES = 3


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
        self._queue = cache(partial(queues.rq_queue, client))

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
        known = self._queue(queue)
        for _ in range(_TRIES):
            now_ms = self._introduce(queue)
            ours = our_fields(keeping, scope_hash, needs, now_ms)
            try:
                known.enqueue_job(new_job(known, job_id, job, keeping, ours), unique=True)
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
