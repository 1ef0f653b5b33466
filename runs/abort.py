"""The flag that asks one run to stop, and says who asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum


class AbortReason(StrEnum):
    """Who stopped a run; `timeout` is the runner's own."""

    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    OPERATOR_CANCEL = "operator-cancel"
    OPERATOR_STOP = "operator-stop"
    SWITCH = "switch"


class Abort:
    """One run's stop request; any thread may set it, the first reason stays.

    Setting it returns at once: what it takes to stop happens in the run's own thread, so a hundred runs are
    stopped in the time of one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flag = threading.Event()
        self._reason: AbortReason | None = None
        self._bells: list[Callable[[], None]] = []

    @property
    def reason(self) -> AbortReason | None:
        """The first reason given; None while nobody asked."""
        return self._reason

    def is_set(self) -> bool:
        """Whether somebody asked."""
        return self._flag.is_set()

    def set(self, reason: AbortReason) -> None:
        """Ask the run to stop; a later reason changes nothing."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            self._flag.set()
            bells = tuple(self._bells)
        for ring in bells:
            ring()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is set or `timeout` seconds have passed; whether it is set."""
        return self._flag.wait(timeout)

    def attach(self, ring: Callable[[], None]) -> None:
        """Have `ring` called once when the flag is set, at once if it is already; it must not block."""
        with self._lock:
            self._bells.append(ring)
            asked = self._reason is not None
        if asked:
            ring()
