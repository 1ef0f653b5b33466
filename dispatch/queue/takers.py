"""Saying that this boot lives. Owners are judged by these beats alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dispatch.queue import keys
from dispatch.queue.apart import WRONG_TYPE, apart
from dispatch.queue.owner import execution_id
from dispatch.queue.registration import Registration
from dispatch.queue.scripts import Scripts
from dispatch.queue.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import redis

    from dispatch.queue.owner import Owner
    from dispatch.queue.popper import Claimed


class Beats:
    """The beats of one worker process for all its queues; for one thread that nothing else can block.

    Registering comes before the first pop: the sweep finds a boot's jobs through its beats. `unreadable`
    hears after each beat which queues did not take all of it, each with the fault's token; the others did.
    """

    def __init__(
        self,
        client: redis.Redis,
        owner: Owner,
        queues: Sequence[str],
        *,
        timings: Timings | None = None,
        unreadable: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self._owner = owner
        self._scripts = Scripts(client)
        self._takers = [keys.queue_keys(queue).takers for queue in queues]
        self._timings = timings or Timings()
        self._client = client
        self._queues = tuple(queues)
        self._registrations: dict[str, Registration] = {}
        self._unreadable = unreadable

    def register(self) -> int:
        """Beat for the first time and appear in RQ's lists; answer Valkey's time in ms. May be repeated."""
        beat = self._beat(())
        if not self._registrations:
            self._registrations = {
                queue: Registration(self._client, self._owner, queue) for queue in self._queues
            }
        return self._show(beat, Registration.register)

    def beat(self, held: Iterable[Claimed]) -> int:
        """Say that this boot lives and has these jobs; answer Valkey's time in ms.

        Ours first: RQ's rows only show something, a fault there must not cost the beat.
        """
        jobs = tuple(held)
        return self._show(self._beat(jobs), lambda registration: registration.beat(busy=bool(jobs)))

    def unregister(self) -> None:
        """Leave RQ's lists, after all runs ended, and tell everybody that this boot will not beat again."""
        silence_ms = round(self._timings.late * 1000)
        self._scripts.call("leave", self._takers, (self._owner.boot, silence_ms))
        for queue, registration in self._registrations.items():
            with apart(queue, {}):
                registration.unregister()

    def _show(self, beat: Sequence[int], show: Callable[[Registration], None]) -> int:
        """Show a beat in RQ's rows, each apart, and tell which queues did not take it; answer its time."""
        now_ms, *places = beat
        unreadable = {self._queues[place - 1]: WRONG_TYPE for place in places}
        for queue, registration in self._registrations.items():
            with apart(queue, unreadable):
                show(registration)
        self._unreadable(unreadable)
        return now_ms

    def _beat(self, jobs: tuple[Claimed, ...]) -> list[int]:
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
        answer: list[int] = self._scripts.call("beat", names, args)
        return answer
