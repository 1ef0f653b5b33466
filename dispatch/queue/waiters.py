"""Waking jobs that sleep for something that has just become free."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, cast

from dispatch.queue import keys
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.scripts import Scripts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis


class WaitReason(StrEnum):
    """Why a job sleeps (contracts 2)."""

    PAUSE_WINDOW = "pause-window"
    WAIT = "wait"
    SCOPE_BUSY = "scope-busy"
    SCOPE_BUSY_FLEET = "scope-busy-fleet"
    CAP = "cap"
    RETRY = "retry"


class Waiters:
    """Moves wake times to now; promotion then brings the jobs back. Safe for threads."""

    def __init__(self, client: redis.Redis, *, delays: Delays = no_delay) -> None:
        self._scripts = Scripts(client)
        self._delays = delays

    def wake_oldest(self, queues: Sequence[str], reason: str, scope_hash: str | None = None) -> list[str]:
        """Wake the one of these queues' sleepers that was queued first; answer its RQ id, or nothing."""
        return self._wake("oldest", queues, reason, scope_hash)

    def wake_all(self, queues: Sequence[str], reason: str, scope_hash: str | None = None) -> list[str]:
        """Wake every job that sleeps for this reason; answer their RQ ids."""
        return self._wake("all", queues, reason, scope_hash)

    def _wake(self, which: str, queues: Sequence[str], reason: str, scope_hash: str | None) -> list[str]:
        names = [
            name
            for queue in queues
            for name in (keys.waiters(queue, reason, scope_hash), keys.queue_keys(queue).scheduled)
        ]
        self._delays("before wake")
        woken = cast("list[bytes]", self._scripts.call("wake", names, (keys.JOB, which)))
        self._delays("after wake")
        return [one.decode("utf-8", "backslashreplace") for one in woken]
