"""Taking a job out that has not started: the queue's part of a cancel."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, cast

from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.scripts import Scripts

if TYPE_CHECKING:
    import redis


class Drop(StrEnum):
    """DROPPED: it will not run. STARTED: it runs, stop it. OVER: it has ended. ABSENT: no such job."""

    DROPPED = "dropped"
    STARTED = "started"
    OVER = "over"
    ABSENT = "absent"


def drop(client: redis.Redis, job_id: str) -> Drop:
    """Remove the job of this natural id if it waits, sleeps or is in hand; its id is free again.

    A repeat after a lost answer says ABSENT. ValueError for no id at all.
    """
    raw_id = rq_id(job_id).encode()
    while True:
        origin = cast("bytes | None", client.hget(keys.job(raw_id), "origin"))
        if origin is None:
            return Drop.ABSENT
        answer = _drop_from(client, raw_id, origin)
        # A reroute took it to another queue between the two looks.
        if answer != b"moved":
            return Drop(answer.decode())


def _drop_from(client: redis.Redis, raw_id: bytes, origin: bytes) -> bytes:
    names = keys.queue_keys(origin.decode("utf-8", "surrogateescape"))
    answer: bytes = Scripts(client).call(
        "drop",
        (keys.job(raw_id), names.jobs, names.scheduled, keys.results(raw_id), keys.executions(raw_id)),
        (raw_id, origin),
    )
    return answer
