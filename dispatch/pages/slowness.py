"""Which server was found too slow for pages: while it is, one request at a time tries it and the rest go on.

The web process has few threads. Each browser asks every few seconds; were each of these requests to wait for
a slow server itself, none would be left for whoever wants to stop the fleet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Slowness:
    """Remembers servers by address; `tells` asks one of them for a sign of life, for a short time at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slow: set[str] = set()
        self._tried: set[str] = set()

    def found(self, address: str) -> None:
        """Remember that it took too long."""
        with self._lock:
            self._slow.add(address)

    def is_over(self, address: str, tells: Callable[[], bool]) -> bool:
        """Say whether it may be asked: it was never slow, or tells now that it is so no more.

        While somebody tries, nobody else does, and the answer is no.
        """
        with self._lock:
            if address not in self._slow:
                return True
            if address in self._tried:
                return False
            self._tried.add(address)
        is_quick = False
        try:
            is_quick = tells()
        finally:
            with self._lock:
                self._tried.discard(address)
                if is_quick:
                    self._slow.discard(address)
        return is_quick
