"""Finding queues whose jobs nobody alive has, for hosts that do not drain them: the dead have nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from dispatch.queue import keys
from dispatch.queue.scripts import Scripts

if TYPE_CHECKING:
    import redis


def suspects(client: redis.Redis, queues: Sequence[str], *, late: float) -> tuple[str, ...]:
    """Name those of the queues that are worth a sweep, in their order; `late` in seconds.

    A taker that has been silent for longer has something in hand or started, or a job has started that no
    taker is known of. One step for all of them; it judges no job.
    """
    if not queues:
        return ()
    named = [keys.queue_keys(queue) for queue in queues]
    places = cast(
        "list[int]",
        Scripts(client).call(
            "suspects",
            [key for one in named for key in (one.takers, one.started)],
            (keys.JOB, round(late * 1000), *queues),
        ),
    )
    return tuple(queues[place - 1] for place in places)
