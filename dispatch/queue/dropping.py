"""Taking a job out that does not run: the queue's part of a cancel.

One that never ran leaves no trace. One with an attempt behind it ends as cancelled, with a final record: what
is recorded of that attempt says that another follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from dispatch.ids import rq_id
from dispatch.instants import instant_or_none
from dispatch.jobs import JobData, encode
from dispatch.queue import fields, keys, results
from dispatch.queue.last_host import LastHost, last_host
from dispatch.queue.scripts import Scripts
from runs.outcome import Reason
from runs.recording import Timing, cancelled, facts_of

if TYPE_CHECKING:
    import redis

_ASKED = ("origin", "worker_name", "left", "attempt", "ended_at")


class Drop(StrEnum):
    """DROPPED: it never runs (again). STARTED: it runs, stop it. OVER: it has ended. ABSENT: no such job."""

    DROPPED = "dropped"
    STARTED = "started"
    OVER = "over"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A job as it was read. `attempt` and `ended_at` as they stand in its hash: an attempt changes both."""

    job: fields.QueuedJob
    origin: bytes
    worker_name: str
    left: str
    attempt: bytes
    ended_at: bytes


def _utc_now() -> datetime:
    return datetime.now(UTC)


def drop(client: redis.Redis, job_id: str, *, utc_now: Callable[[], datetime] = _utc_now) -> Drop:
    """Take out the job of this natural id if it waits, sleeps or is in hand.

    Its id is free again if it never ran. A repeat after a lost answer says ABSENT, or OVER of one that ran.
    ValueError for no id at all.
    """
    raw_id = rq_id(job_id).encode()
    while True:
        seen = _read(client, raw_id)
        if seen is None:
            return Drop.ABSENT
        answer = _drop_as(client, seen, utc_now())
        # A reroute or another attempt came between the two looks.
        if answer != b"changed":
            return Drop(answer.decode())


def _read(client: redis.Redis, raw_id: bytes) -> _Seen | None:
    names = [*_ASKED, *fields.NAMES]
    values = cast("list[bytes | None]", client.hmget(keys.job(raw_id), names))
    origin, worker_name, left, attempt, ended_at = values[: len(_ASKED)]
    if origin is None:
        return None
    queue = origin.decode("utf-8", "replace")
    return _Seen(
        job=fields.QueuedJob(**fields.read(queue, raw_id, values[len(_ASKED) :])),
        origin=origin,
        worker_name=(worker_name or b"").decode("utf-8", "replace"),
        left=(left or b"").decode("utf-8", "replace"),
        attempt=attempt or b"",
        ended_at=ended_at or b"",
    )


def _drop_as(client: redis.Redis, seen: _Seen, now: datetime) -> bytes:
    raw_id, names = seen.job.raw_id, keys.queue_keys(seen.job.queue)
    ran = seen.job.attempt > 0
    # An attempt that no host is known to have had is nobody's to record.
    host = last_host(client, worker_name=seen.worker_name, left=seen.left) if ran else None
    answer: bytes = Scripts(client).call(
        "drop",
        (
            *(keys.job(raw_id), names.jobs, names.scheduled, keys.results(raw_id), keys.executions(raw_id)),
            *(names.finished, keys.pending_records(host.keeper if host else "")),
        ),
        (
            *(raw_id, seen.origin, seen.attempt, seen.ended_at),
            *(_record(seen.job, host, now) if host else b"", fields.rq_text(now), now.timestamp()),
            *(results.FINISHED_SECONDS, *results.returned(Reason.OPERATOR_CANCEL.value)),
        ),
    )
    return answer


def _record(job: fields.QueuedJob, host: LastHost, now: datetime) -> bytes:
    """Write the record of the attempt that would have come: nothing of it ran."""
    facts = facts_of(
        job.job_id,
        encode(job.job)["data"] if isinstance(job.job, JobData) else {},
        queued_at=instant_or_none(job.first_queued_ms),
        scope_hash=job.scope,
    )
    timing = Timing(attempt=job.attempt, host=host.name, started_at=None, ended_at=now)
    return cancelled(facts, timing, earlier=job.attempt_log).to_bytes()
