"""Which jobs this worker has just cleared: something else may put them off again at once."""

from __future__ import annotations

import threading


class Cleared:
    """Remembers for `interval_ms` that a job was cleared; safe for threads. Instants are epoch ms.

    In memory only: after a restart, or on another host, the job is asked about once more.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._until: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, job_id: str, *, now_ms: int) -> None:
        """Remember the job from now on, and forget those whose time is over."""
        with self._lock:
            self._until = {one: until for one, until in self._until.items() if until > now_ms}
            self._until[job_id] = now_ms + self._interval_ms

    def has(self, job_id: str, *, now_ms: int) -> bool:
        """Tell whether it was cleared within the interval."""
        with self._lock:
            return self._until.get(job_id, now_ms) > now_ms
