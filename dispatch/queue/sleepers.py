"""Who sleeps for a reason and what each of them is, for whoever wakes only some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from redis.exceptions import ResponseError

from dispatch.jobs import JobData, Malformed, decode
from dispatch.queue import keys
from dispatch.queue.chunks import chunks
from dispatch.queue.entries import number, text
from dispatch.queue.states import State

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleeper:
    """One sleeping job: its id as it stands in Valkey, what it is, and when it wakes (epoch ms, if known)."""

    queue: str
    raw_id: bytes
    job: JobData | Malformed = field(repr=False)
    until_ms: int | None


class Sleepers:
    """Reads sleeping jobs. Safe for threads; changes nothing."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def read(self, queues: Sequence[str], reason: str) -> Iterator[Sleeper]:
        """Read who sleeps for this reason, queue by queue, the first queued first.

        Some hundred at a time: who falls asleep meanwhile may be missing, who is answered may be awake.
        Raises what redis-py raises, also between two jobs.
        """
        for queue in queues:
            members = cast("list[bytes]", self._client.zrange(keys.waiters(queue, reason), 0, -1))
            for raw_ids in chunks(members):
                yield from self._read(queue, raw_ids)

    def _read(self, queue: str, raw_ids: Sequence[bytes]) -> Iterator[Sleeper]:
        with self._client.pipeline(transaction=False) as pipeline:
            for raw_id in raw_ids:
                pipeline.hmget(keys.job(raw_id), "status", "until", "data")
            answers = pipeline.execute(raise_on_error=False)
        for raw_id, answer in zip(raw_ids, answers, strict=True):
            status, until, data = _values(answer)
            if status == State.SCHEDULED:
                yield Sleeper(queue=queue, raw_id=raw_id, job=decode(data or b""), until_ms=number(until))


def _values(answer: list[bytes | None] | Exception) -> tuple[str | None, str | None, bytes | None]:
    if isinstance(answer, ResponseError) and str(answer).startswith("WRONGTYPE"):
        # What stands there is no job.
        return None, None, None
    if isinstance(answer, Exception):
        raise answer
    status, until, data = answer
    return text(status), text(until), data
