"""A job as RQ's object before it is stored: how long it is kept, and what its hash has of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from dispatch.ids import rq_id
from dispatch.jobs import CALLABLE, encode
from dispatch.queue import queues
from hosts import capabilities

if TYPE_CHECKING:
    from collections.abc import Collection

    from rq import Queue

    from dispatch.jobs import JobData

_DAY = 24 * 3600
# RQ never judges our jobs' time: the worker's own limit does (Q 18, row 11).
_NO_TIMEOUT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How often a job may be tried and how long its id is known after its end (Q 2.4), in seconds."""

    attempts: int
    finished_seconds: int
    failed_seconds: int


LOCAL = Keeping(attempts=2, finished_seconds=_DAY, failed_seconds=7 * _DAY)
FORGE = Keeping(attempts=2, finished_seconds=31 * _DAY, failed_seconds=31 * _DAY)
CRON = Keeping(attempts=1, finished_seconds=_DAY, failed_seconds=7 * _DAY)


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
