"""How many checks run at once: few, and never so many that a paid job finds no slot (Q 9.4)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from dispatch.leases import order
from dispatch.leases.leases import Leases
from dispatch.waits.visit import Visit, WaitBounds


def check_limit(slots: int, concurrency: int) -> int:
    """Give the limit of a host: the operator's, but one less than its jobs, and never none."""
    return min(slots, max(1, concurrency - 1))


class CheckSlots:
    """Counts the checks that run on this host; safe for threads.

    `limit` is asked each time, so that it may change. `in_fleet` holds, inside a host's slot, one of the
    fleet's for a visit, and answers whether it does; without a fleet nothing more is asked.
    """

    def __init__(
        self,
        limit: Callable[[], int],
        *,
        in_fleet: Callable[[Visit], AbstractContextManager[bool]] = lambda _: nullcontext(enter_result=True),
    ) -> None:
        self._limit = limit
        self.in_fleet = in_fleet
        self._used = 0
        self._lock = threading.Lock()

    @property
    def limit(self) -> int:
        """How many may run at once, as of now."""
        return self._limit()

    @property
    def used(self) -> int:
        """How many run now."""
        with self._lock:
            return self._used

    def try_take(self) -> bool:
        """Take one; False, counting nothing, when the limit is reached. Never waits."""
        limit = self._limit()
        with self._lock:
            if self._used >= limit:
                return False
            self._used += 1
            return True

    def give_back(self) -> None:
        """Give one back; one that nobody holds is our own bug and is refused loudly."""
        with self._lock:
            if self._used <= 0:
                raise RuntimeError("a check slot was given back twice")
            self._used -= 1


@contextmanager
def fleet_slot(leases: Leases | None, bounds: WaitBounds, visit: Visit) -> Iterator[bool]:
    """Hold one of the fleet's check slots for this visit; False when none is free. Without a fleet: True."""
    if leases is None:
        yield True
        return
    lease = leases.take(
        order.CHECKS,
        job_id=visit.job.job_id,
        token=visit.job.token,
        slots=bounds.slots,
        ttl_ms=(len(visit.conditions.profiles) + 1) * bounds.check_timeout_ms,
    )
    try:
        yield lease is not None
    finally:
        if lease is not None:
            leases.release(lease)
