"""Which jobs run, by the queues alone: the second witness for `stop` beside the lists of containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from redis.exceptions import ResponseError

from dispatch.ids import natural_id
from dispatch.queue import keys
from dispatch.queue.entries import number
from dispatch.queue.scripts import Scripts
from hosts.faults import token_of

if TYPE_CHECKING:
    import redis

# More than the workers of a fleet run at once.
_MOST_PER_QUEUE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A job that began and has not ended. `token` is its pop's, `host` who has it, unchecked."""

    raw_id: bytes
    token: str
    host: str
    attempt: int

    @property
    def job_id(self) -> str:
        """The id as people write it."""
        rq_id = self.raw_id.decode("utf-8", "backslashreplace")
        return natural_id(rq_id) or rq_id


def started(client: redis.Redis, queues: Sequence[str]) -> Mapping[str, list[Started] | str]:
    """List what runs, by queue, at one instant; a token for a queue that cannot be read or has too many."""
    named = [keys.queue_keys(queue).started for queue in queues]
    answers = cast(
        "list[list[list[bytes]] | ResponseError]",
        Scripts(client).call("started", named, (keys.JOB, _MOST_PER_QUEUE)) if named else [],
    )
    return {
        queue: token_of(rows) if isinstance(rows, ResponseError) else [_started(*row) for row in rows]
        for queue, rows in zip(queues, answers, strict=True)
    }


def left(client: redis.Redis, jobs: Sequence[Started]) -> list[Started]:
    """Pick those whose own worker has ended or put back this very attempt; not those that others ended."""
    with client.pipeline(transaction=False) as pipeline:
        for one in jobs:
            pipeline.hget(cast("str", keys.job(one.raw_id)), "left")
        found = pipeline.execute(raise_on_error=False)
    return [one for one, token in zip(jobs, found, strict=True) if token and token == one.token.encode()]


def _started(raw_id: bytes, token: bytes, host: bytes, attempt: bytes) -> Started:
    return Started(
        raw_id=raw_id,
        token=token.decode("utf-8", "replace"),
        host=host.decode("utf-8", "replace"),
        attempt=number(attempt.decode("utf-8", "replace")) or 0,
    )
