"""Waking jobs that sleep for something that has just become free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from dispatch.queue import keys
from dispatch.queue.chunks import chunks
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.scripts import Scripts

if TYPE_CHECKING:
    import redis


class WaitReason(StrEnum):
    """Why a job sleeps (contracts 2)."""

    PAUSE_WINDOW = "pause-window"
    WAIT = "wait"
    SCOPE_BUSY = "scope-busy"
    SCOPE_BUSY_FLEET = "scope-busy-fleet"
    CAP = "cap"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Slice:
    """How many were woken, and the score to go on from: the last one's; None when no more sleep."""

    woken: int
    after: float | None


class Waiters:
    """Moves wake times to now; promotion then brings the jobs back. Safe for threads.

    Who was woken counts as asleep until it is promoted: waking it again changes nothing.
    """

    def __init__(self, client: redis.Redis, *, delays: Delays = no_delay) -> None:
        self._scripts = Scripts(client)
        self._delays = delays

    def wake_oldest(
        self,
        queues: Sequence[str],
        reason: str,
        scope_hash: str | None = None,
        *,
        due_seconds: int | None = None,
    ) -> list[str]:
        """Wake the one of these queues' sleepers that was queued first; answer its RQ id, or nothing.

        Queues where somebody was due `due_seconds` ago and still sleeps are passed over: no host promotes
        there.
        """
        due = "" if due_seconds is None else due_seconds
        _, woken = self._wake(_names(queues, reason, scope_hash), (_FROM_THE_FIRST, 1, "exact", due))
        return [one.decode("utf-8", "backslashreplace") for one in woken]

    def wake_some(self, queues: Sequence[str], reason: str, *, after: float, most: int) -> Slice:
        """Wake the `most` (at least 1) that were queued first after this score, of all these queues together.

        A score is `firstQueued` in epoch ms; begin with -inf. All that share the last one's score are woken
        with it, so that going on from it leaves nobody out.
        """
        last, woken = self._wake(_names(queues, reason), (after, most, "whole", ""))
        return Slice(len(woken), float(last) if last else None)

    def wake_these(self, sleepers: Iterable[tuple[str, bytes]]) -> int:
        """Wake these jobs, each a queue and a raw id, and say how many were asleep.

        One step per queue and some hundred ids: a fault may come when some were woken already.
        """
        ids_of: dict[str, list[bytes]] = defaultdict(list)
        for queue, raw_id in sleepers:
            ids_of[queue].append(raw_id)
        return sum(self._wake_chunk(queue, chunk) for queue, ids in ids_of.items() for chunk in chunks(ids))

    def _wake_chunk(self, queue: str, raw_ids: Sequence[bytes]) -> int:
        self._delays("before wake")
        scheduled = keys.queue_keys(queue).scheduled
        woken = cast("int", self._scripts.call("wake_these", (scheduled,), (keys.JOB, *raw_ids)))
        self._delays("after wake")
        return woken

    def _wake(
        self, names: Sequence[str], which: tuple[float, int, str, int | str]
    ) -> tuple[bytes, list[bytes]]:
        self._delays("before wake")
        answer = cast("list[bytes]", self._scripts.call("wake", names, (keys.JOB, *which)))
        self._delays("after wake")
        return answer[0], answer[1:]


_FROM_THE_FIRST = float("-inf")


def _names(queues: Sequence[str], reason: str, scope_hash: str | None = None) -> list[str]:
    return [
        name
        for queue in queues
        for name in (keys.waiters(queue, reason, scope_hash), keys.queue_keys(queue).scheduled)
    ]
