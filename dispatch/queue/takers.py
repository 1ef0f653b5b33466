"""Saying that this boot lives. Owners are judged by these beats alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dispatch.queue import keys
from dispatch.queue.owner import execution_id
from dispatch.queue.registration import Registration
from dispatch.queue.scripts import Scripts
from dispatch.queue.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import redis

    from dispatch.queue.owner import Owner
    from dispatch.queue.popper import Claimed


class Beats:
    """The beats of one worker process for all its queues; for one thread that nothing else can block.

    Registering comes before the first pop: the sweep finds a boot's jobs through its beats.
    """

    def __init__(
        self, client: redis.Redis, owner: Owner, queues: Sequence[str], *, timings: Timings | None = None
    ) -> None:
        self._owner = owner
        self._scripts = Scripts(client)
        self._takers = [keys.queue_keys(queue).takers for queue in queues]
        self._timings = timings or Timings()
        self._client = client
        self._queues = tuple(queues)
        self._registrations: list[Registration] = []

    def register(self) -> int:
        """Beat for the first time and appear in RQ's lists; answer Valkey's time in ms. May be repeated."""
        now_ms = self._beat(())
        if not self._registrations:
            self._registrations = [Registration(self._client, self._owner, queue) for queue in self._queues]
        for registration in self._registrations:
            registration.register()
        return now_ms

    def beat(self, held: Iterable[Claimed]) -> int:
        """Say that this boot lives and has these jobs; answer Valkey's time in ms.

        Ours first: RQ's rows only show something, a fault there must not cost the beat.
        """
        jobs = tuple(held)
        now_ms = self._beat(jobs)
        for registration in self._registrations:
            registration.beat(busy=bool(jobs))
        return now_ms

    def unregister(self) -> None:
        """Leave RQ's lists, after all runs ended, and tell everybody that this boot will not beat again."""
        silence_ms = round(self._timings.late * 1000)
        self._scripts.call("leave", self._takers, (self._owner.boot, silence_ms))
        for registration in self._registrations:
            registration.unregister()

    def _beat(self, jobs: tuple[Claimed, ...]) -> int:
        names: list[str | bytes] = list(self._takers)
        args: list[str | bytes | int | float] = [
            self._owner.boot,
            len(self._takers),
            self._timings.execution_ttl,
            time.time(),
        ]
        for job in jobs:
            execution = execution_id(job.token)
            names += [
                keys.execution(job.raw_id, execution),
                keys.executions(job.raw_id),
                keys.queue_keys(job.queue).started,
            ]
            args += [job.raw_id, execution]
        now_ms: int = self._scripts.call("beat", names, args)
        return now_ms
