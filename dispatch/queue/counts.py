"""How many jobs stand where: the figures of `status`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redis.exceptions import ResponseError

from dispatch.queue import keys
from dispatch.queue.scripts import Scripts
from hosts import keys as hosts_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """One queue, or several added up. The list of a paused queue counts as `paused`, not as `waiting`.

    `active` is in hand and started, `delayed` what sleeps.
    """

    waiting: int = 0
    active: int = 0
    paused: int = 0
    delayed: int = 0
    failed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            waiting=self.waiting + other.waiting,
            active=self.active + other.active,
            paused=self.paused + other.paused,
            delayed=self.delayed + other.delayed,
            failed=self.failed + other.failed,
        )


def count(client: redis.Redis, queues: Sequence[str]) -> Mapping[str, Counts | ResponseError]:
    """Count the jobs of each queue at one instant, the pause switches judged by Valkey's time.

    In the place of a queue with a key that cannot be read stands the server's refusal.
    """
    if not queues:
        return {}
    named = [keys.queue_keys(queue) for queue in queues]
    rows = Scripts(client).call(
        "counts",
        [
            hosts_keys.pause(hosts_keys.FLEET),
            *(
                key
                for one in named
                for key in (one.jobs, one.scheduled, one.started, one.failed, one.takers, one.pause)
            ),
        ],
        queues,
    )
    return {
        queue: row if isinstance(row, ResponseError) else _counts(row)
        for queue, row in zip(queues, rows, strict=True)
    }


def _counts(row: list[int]) -> Counts:
    listed, in_hand, started, sleeping, failed, is_paused = row
    return Counts(
        waiting=0 if is_paused else listed,
        active=in_hand + started,
        paused=listed if is_paused else 0,
        delayed=sleeping,
        failed=failed,
    )
