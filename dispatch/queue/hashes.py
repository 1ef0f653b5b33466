"""Reading fields of many jobs' hashes, some hundred at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from dispatch.queue import keys
from dispatch.queue.chunks import chunks

if TYPE_CHECKING:
    import redis


def read(
    client: redis.Redis, raw_ids: Sequence[bytes], names: Sequence[str]
) -> Iterator[tuple[bytes, list[bytes | None]]]:
    """Answer each id with the values of these fields; an id whose key is no hash is left out.

    Not one instant: it may be another between two jobs. Raises what redis-py raises, also then.
    """
    for some in chunks(raw_ids):
        with client.pipeline(transaction=False) as pipeline:
            for raw_id in some:
                pipeline.hmget(keys.job(raw_id), *names)
            answers: list[Any] = pipeline.execute(raise_on_error=False)
        for raw_id, answer in zip(some, answers, strict=True):
            if isinstance(answer, ResponseError) and str(answer).startswith("WRONGTYPE"):
                continue
            if isinstance(answer, Exception):
                raise answer
            yield raw_id, answer
