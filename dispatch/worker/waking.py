"""Waking who sleeps for what the operator, or a refund, has changed: those it concerns, without a stampede.

Who is woken goes to the front of the line, so that waking everybody at each edit would keep the jobs behind
them from starting. Of the paused those are woken whose pause is over or ends sooner by now; of the parked
some at a time, the oldest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dispatch.instants import epoch_ms
from dispatch.jobs import JobData
from dispatch.operator_files.pause_windows import PauseWindow, paused_until
from dispatch.queue.sleepers import Sleeper
from dispatch.queue.waiters import WaitReason

if TYPE_CHECKING:
    from dispatch.queue.sleepers import Sleepers
    from dispatch.queue.waiters import Waiters

# Some more than a host's slots: most of those that are woken find no room and sleep again within a moment.
_PARKED_AT_ONCE = 20


class Waking:
    """Wakes the sleepers of one worker's queues; for one thread. `woken` rings for who promotes.

    Each call does a bounded part and tells whether more is left; faults of Valkey go through, and the next
    call does that part again.
    """

    def __init__(
        self, queues: Sequence[str], *, waiters: Waiters, sleepers: Sleepers, woken: Callable[[], object]
    ) -> None:
        self._queues = tuple(queues)
        self._waiters = waiters
        self._sleepers = sleepers
        self._woken = woken
        self._after = self._goal = -math.inf
        self._is_round = False

    def parked_anew(self) -> None:
        """Go once round all of them from here on: who is next stays next, however often this is asked."""
        self._goal, self._is_round = self._after, False

    def parked(self) -> bool:
        """Wake the next of those that a cap holds up; whether some have not looked since it was asked."""
        found = self._waiters.wake_some(self._queues, WaitReason.CAP, after=self._after, most=_PARKED_AT_ONCE)
        if found.woken:
            self._woken()
        if found.after is None:
            self._after, self._is_round = -math.inf, True
        else:
            self._after = found.after
        return not (self._is_round and self._after >= self._goal)

    def paused(self, windows: Sequence[PauseWindow], now: datetime) -> None:
        """Wake those whose pause is over by these windows, or ends sooner than they sleep."""
        chosen = [(one.queue, one.raw_id) for one in self._freed(windows, now)]
        if chosen and self._waiters.wake_these(chosen):
            self._woken()

    def _freed(self, windows: Sequence[PauseWindow], now: datetime) -> Iterator[Sleeper]:
        for one in self._sleepers.read(self._queues, WaitReason.PAUSE_WINDOW):
            until = paused_until(windows, one.job.pause_scope, now) if isinstance(one.job, JobData) else None
            if until is None or one.until_ms is None or epoch_ms(until) < one.until_ms:
                yield one
