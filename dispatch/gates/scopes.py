"""How many jobs of one scope run on this host at once: for a folder one, always (Q 3.1 gate 4).

The map is shared by every queue that the worker drains and lives in memory: what a killed worker held is free
again, because its containers are reaped before the next one starts work.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable


class ScopeSlots:
    """Held scopes by hash; a scope is a digest here, never a path."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    def try_take(self, scope_hash: str, limit: int) -> bool:
        """Take one place of the scope; False, counting nothing, when `limit` are taken."""
        with self._lock:
            if self._held[scope_hash] >= limit:
                return False
            self._held[scope_hash] += 1
            return True

    def give_back(self, scope_hash: str) -> None:
        """Give one place back; a place that nobody holds is our own bug and is refused loudly."""
        with self._lock:
            if self._held[scope_hash] <= 0:
                raise RuntimeError("a scope was given back twice")
            self._held[scope_hash] -= 1
            if not self._held[scope_hash]:
                del self._held[scope_hash]

    def hold(self, scope_hashes: Iterable[str]) -> None:
        """Keep scopes busy for containers that this process did not start and that are not gone yet."""
        with self._lock:
            self._held.update(scope_hashes)

    @property
    def held(self) -> dict[str, int]:
        """Scope hash to places taken, as of now."""
        with self._lock:
            return dict(self._held)
