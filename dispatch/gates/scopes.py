"""How many jobs of one scope run on this host at once: for a folder one, always (Q 3.1 gate 4).

The map is shared by every queue that the worker drains and lives in memory: what a killed worker held is free
again, because its containers are reaped before the next one starts work.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable


class ScopeSlots:
    """Held scopes by hash; a scope is a digest here, never a path.

    A scope that somebody was denied is remembered as wanted, so that freeing it costs a look for sleepers
    only where there may be some.
    """

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._wanted: set[str] = set()
        self._lock = threading.Lock()

    def try_take(self, scope_hash: str, limit: int | None) -> bool:
        """Take one place of the scope; False, counting nothing, when `limit` (None: no limit) are taken."""
        with self._lock:
            if limit is not None and self._held[scope_hash] >= limit:
                self._wanted.add(scope_hash)
                return False
            self._held[scope_hash] += 1
            return True

    def give_back(self, scope_hash: str) -> bool:
        """Give one place back and tell whether somebody may be waiting for it.

        A place that nobody holds is our own bug and is refused loudly.
        """
        with self._lock:
            if self._held[scope_hash] <= 0:
                raise RuntimeError("a scope was given back twice")
            self._held[scope_hash] -= 1
            if not self._held[scope_hash]:
                del self._held[scope_hash]
            return scope_hash in self._wanted

    def nobody_waits(self, scope_hash: str) -> None:
        """Forget that the scope was wanted, after a look that found no sleeper."""
        with self._lock:
            self._wanted.discard(scope_hash)

    def has_room(self, scope_hash: str, limit: int | None) -> bool:
        """Whether fewer than `limit` (None: no limit) places are taken now."""
        with self._lock:
            return limit is None or self._held[scope_hash] < limit

    def hold(self, scope_hashes: Iterable[str]) -> None:
        """Keep scopes busy for containers that this process did not start and that are not gone yet."""
        with self._lock:
            self._held.update(scope_hashes)

    def release(self, scope_hashes: Iterable[str]) -> None:
        """Free what `hold` kept busy."""
        for scope_hash in scope_hashes:
            self.give_back(scope_hash)

    @property
    def held(self) -> dict[str, int]:
        """Scope hash to places taken, as of now."""
        with self._lock:
            return {scope: count for scope, count in self._held.items() if count}
