"""Bringing sleeping jobs whose time has come back to the front of their queues."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dispatch.queue import fields, keys
from dispatch.queue.apart import WRONG_TYPE
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.scripts import Scripts
from dispatch.queue.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import redis

# How far a queue's front is put in order: what stands deeper is far from being taken.
_FRONT_PER_PROMOTED = 5


class Promoter:
    """Promotes by Valkey's clock; any number of workers may, at any time. Safe for threads.

    `unreadable` hears after each time of which queues a key has another type, each with that token.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        timings: Timings | None = None,
        delays: Delays = no_delay,
        unreadable: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self._scripts = Scripts(client)
        self._timings = timings or Timings()
        self._delays = delays
        self._unreadable = unreadable

    def promote(self, queues: Sequence[str]) -> int:
        """Bring back what is due on these queues, in one step, and say how many jobs that were.

        They go before what was never taken, and with what was taken before by their first queueing.
        """
        if not queues:
            return 0
        named = [keys.queue_keys(queue) for queue in queues]
        most = self._timings.promote_most
        self._delays("before promote")
        answers: list[int] = self._scripts.call(
            "promote",
            [key for one in named for key in (one.scheduled, one.jobs)],
            (keys.JOB, most, _FRONT_PER_PROMOTED * most, fields.rq_text(datetime.now(UTC)), *queues),
        )
        counts = dict(zip(queues, answers, strict=True))
        self._unreadable({queue: WRONG_TYPE for queue, count in counts.items() if count < 0})
        promoted = sum(count for count in counts.values() if count > 0)
        if promoted:
            self._delays("after promote")
        return promoted
