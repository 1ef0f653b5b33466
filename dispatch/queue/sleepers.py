"""Who sleeps for a reason and what each of them is, for whoever wakes only some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from dispatch.jobs import JobData, Malformed, decode
from dispatch.queue import hashes, keys
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
            for raw_id, values in hashes.read(self._client, members, ("status", "until", "data")):
                status, until, data = values
                if text(status) == State.SCHEDULED:
                    job = decode(data or b"")
                    yield Sleeper(queue=queue, raw_id=raw_id, job=job, until_ms=number(text(until)))
