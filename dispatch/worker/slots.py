"""The host's container slots: one counter under one lock, shared by every queue that the worker drains."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Slots:
    """Counts runs in hand against a limit that may change while the worker lives.

    Lowering the limit stops nobody; it lets the next ones wait. Who waits for a slot gets it in turn: of two
    queues that are both full, each has every other slot.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._changed = threading.Condition()
        # One entry for each that waits, the longest first.
        self._line: deque[object] = deque()

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
        """Take one without waiting; False when none is free, or somebody waits for it."""
        with self._changed:
            if self._line or self._used >= self._limit:
                return False
            self._used += 1
            return True

    def take(self, *, stop: Callable[[], bool], ask_every: float = 1.0) -> bool:
        """Wait for one in turn and take it; False once `stop` says so, asked every so many seconds."""
        me = object()
        with self._changed:
            self._line.append(me)
            try:
                while not stop():
                    if self._line[0] is me and self._used < self._limit:
                        self._used += 1
                        return True
                    self._changed.wait(ask_every)
                return False
            finally:
                self._line.remove(me)
                self._changed.notify_all()

    def give_back(self) -> None:
        """Give one back; giving back more than was taken is our own bug and is refused loudly."""
        with self._changed:
            if self._used == 0:
                raise RuntimeError("a slot was given back twice")
            self._used -= 1
            self._changed.notify_all()

    def wait_idle(self, seconds: float) -> bool:
        """Wait until none is taken, at most `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._used == 0, timeout=seconds)
