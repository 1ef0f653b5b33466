"""Whether Valkey answers, told once when it stops and once when it is back, from whichever thread notices."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pidispatch_site import log


class Outage:
    """Hears of each fault and of each beat that went through; `interrupted` is called for each fault."""

    def __init__(self, interrupted: Callable[[], None]) -> None:
        self._interrupted = interrupted
        self._lock = threading.Lock()
        self._is_on = False

    @property
    def is_on(self) -> bool:
        """Whether the last that was heard of Valkey is a fault."""
        return self._is_on

    def faulted(self, fault: Exception) -> None:
        """Note a fault; the first of an outage is logged by its type, never by its text."""
        self._interrupted()
        with self._lock:
            first, self._is_on = not self._is_on, True
        if first:
            log.event("valkey_unreachable", error=type(fault).__name__)

    def answered(self) -> None:
        """Note that Valkey answers; the end of an outage is logged."""
        with self._lock:
            was_on, self._is_on = self._is_on, False
        if was_on:
            log.event("valkey_restored")
