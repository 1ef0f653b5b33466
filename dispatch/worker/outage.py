"""Whether Valkey answers, told once when it stops and once when it is back, from whichever thread notices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pidispatch_site import log

# Who missed so much may have missed what others did meanwhile, and says so for as long as that is news.
LONG_SECONDS = 15.0
RECENT_SECONDS = 90.0


class Outage:
    """Hears of each fault and of each beat that went through; `interrupted` is called for each fault.

    `clock` is monotonic seconds.
    """

    def __init__(
        self, interrupted: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interrupted = interrupted
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None
        self._long_one_ended: float | None = None

    @property
    def is_on(self) -> bool:
        """Whether the last that was heard of Valkey is a fault."""
        return self._since is not None

    @property
    def was_long_and_is_recent(self) -> bool:
        """Whether one that lasted longer than a beat is on, or ended within the last minute and a half."""
        with self._lock:
            now, since, ended = self._clock(), self._since, self._long_one_ended
        is_long = since is not None and now - since > LONG_SECONDS
        return is_long or (ended is not None and now - ended < RECENT_SECONDS)

    def faulted(self, fault: Exception) -> None:
        """Note a fault; the first of an outage is logged by its type, never by its text."""
        self._interrupted()
        with self._lock:
            first = self._since is None
            if first:
                self._since = self._clock()
        if first:
            log.event("valkey_unreachable", error=type(fault).__name__)

    def answered(self) -> None:
        """Note that Valkey answers; the end of an outage is logged."""
        with self._lock:
            since, self._since = self._since, None
            now = self._clock()
            if since is not None and now - since > LONG_SECONDS:
                self._long_one_ended = now
        if since is not None:
            log.event("valkey_restored")
