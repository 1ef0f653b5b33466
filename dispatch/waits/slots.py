"""How many checks run at once on this host: few, and never so many that a paid job finds no slot (Q 9.4)."""

from __future__ import annotations

import threading
from collections.abc import Callable


def check_limit(slots: int, concurrency: int) -> int:
    """Give the limit: the operator's, but one less than the jobs of this host, and never none."""
    return min(slots, max(1, concurrency - 1))


class CheckSlots:
    """Counts the checks that run; safe for threads. `limit` is asked each time, so that it may change."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
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
