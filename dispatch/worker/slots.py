"""The host's container slots: one counter under one lock, shared by every queue that the worker drains."""

from __future__ import annotations

import threading


class Slots:
    """Counts runs in hand against a limit that may change while the worker lives.

    Lowering the limit stops nobody; it lets the next ones wait.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._changed = threading.Condition()

    @property
    def limit(self) -> int:
        """How many may be taken at once."""
        return self._limit

    @property
    def used(self) -> int:
        """How many are taken now."""
        return self._used

    def resize(self, limit: int) -> None:
        """Apply a new limit at once."""
        with self._changed:
            self._limit = limit
            self._changed.notify_all()

    def try_take(self) -> bool:
        """Take one without waiting; False when none is free."""
        with self._changed:
            if self._used >= self._limit:
                return False
            self._used += 1
            return True

    def give_back(self) -> None:
        """Give one back; giving back more than was taken is our own bug and is refused loudly."""
        with self._changed:
            if self._used == 0:
                raise RuntimeError("a slot was given back twice")
            self._used -= 1
            self._changed.notify_all()

    def wait_free(self, seconds: float) -> bool:
        """Wait until one looks free, at most `seconds`; who then tries to take it may still lose the race."""
        with self._changed:
            return self._changed.wait_for(lambda: self._used < self._limit, timeout=seconds)

    def wait_idle(self, seconds: float) -> bool:
        """Wait until none is taken, at most `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._used == 0, timeout=seconds)
