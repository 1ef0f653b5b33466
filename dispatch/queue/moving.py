"""Moving jobs that nobody has in hand to another queue: the queue's part of a reroute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from dispatch.ids import natural_id
from dispatch.jobs import JobData, Malformed, decode
from dispatch.queue import hashes, keys
from dispatch.queue.chunks import chunks
from dispatch.queue.entries import text
from dispatch.queue.scripts import Scripts
from dispatch.queue.states import State
from hosts import capabilities
from hosts import keys as hosts_keys

if TYPE_CHECKING:
    import redis

_FIELDS = ("status", "origin", "data", "needs")
# How far the other queue's front is looked at: what stands deeper is far from being taken.
_FRONT = 5000
# Of a longer text of needs the rest is not read; a name cut short is one that nobody has, so the job stays.
_MOST_NEEDS_BYTES = 4096


class Moved(StrEnum):
    """What became of one job.

    MOVED: it is on the other queue, by this try or an earlier one. IN_HAND, STARTED, OVER: it stays as it
    is. ELSEWHERE: it is on a third queue. ABSENT: no such job.
    """

    MOVED = "moved"
    IN_HAND = "in-hand"
    STARTED = "started"
    OVER = "over"
    ELSEWHERE = "elsewhere"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job in line or asleep: its id as it stands in Valkey, the natural id, and what it is to do.

    `needs` are the capabilities that were asked for when it was enqueued, beside what its data needs.
    """

    raw_id: bytes
    job_id: str
    job: JobData | Malformed = field(repr=False)
    needs: frozenset[str] = frozenset()


def read_waiting(client: redis.Redis, queue: str) -> tuple[Waiting, ...]:
    """Read who waits on the queue: those in line first, in their order, then those asleep.

    Some hundred at a time: who is answered may have been taken meanwhile.
    """
    names = keys.queue_keys(queue)
    with client.pipeline(transaction=True) as pipeline:
        pipeline.lrange(names.jobs, 0, -1)
        pipeline.zrange(names.scheduled, 0, -1)
        line, asleep = cast("list[list[bytes]]", pipeline.execute())
    raw_ids = tuple(dict.fromkeys((*line, *asleep)))
    return tuple(
        _waiting(raw_id, data or b"", needs or b"")
        for raw_id, (status, origin, data, needs) in hashes.read(client, raw_ids, _FIELDS)
        if text(status) in {State.QUEUED, State.SCHEDULED} and text(origin) == queue
    )


def _waiting(raw_id: bytes, data: bytes, needs: bytes) -> Waiting:
    rq_id = raw_id.decode("utf-8", "backslashreplace")
    return Waiting(
        raw_id=raw_id,
        job_id=natural_id(rq_id) or rq_id,
        job=decode(data),
        needs=capabilities.parse(needs[:_MOST_NEEDS_BYTES].decode("utf-8", "replace")),
    )


def move(client: redis.Redis, raw_ids: Sequence[bytes], *, source: str, target: str) -> dict[bytes, Moved]:
    """Move these jobs, those in line given in their order, from one queue to another.

    A job in line stays in line and one asleep asleep, with its wake time and what it waits for. One step per
    some hundred ids; after a fault it may be repeated with the same ids.
    """
    if source == target:
        raise ValueError("a move from a queue to itself")
    own, other = keys.queue_keys(source), keys.queue_keys(target)
    scripts = Scripts(client)
    found: dict[bytes, Moved] = {}
    for some in chunks(raw_ids):
        answers = scripts.call(
            "move",
            (
                *(own.jobs, own.scheduled, other.jobs, other.scheduled),
                *(keys.QUEUES, hosts_keys.QUEUES_KNOWN),
            ),
            (source, target, keys.JOB, _FRONT, *some),
        )
        found |= {raw_id: Moved(answer.decode()) for raw_id, answer in zip(some, answers, strict=True)}
    return found
