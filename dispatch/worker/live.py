"""The attempts this process has in hand, seen by its other threads: to abort them, to count them, to spare them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runs.abort import Abort


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAttempt:
    """One attempt: the pop's token, the container name that it has or will have, and its abort flag."""

    token: str
    queue: str
    container: str
    abort: Abort


class LiveAttempts:
    """Every attempt between its claim and its last transition; safe to read from any thread."""

    def __init__(self) -> None:
        self._by_token: dict[str, LiveAttempt] = {}
        self._lock = threading.Lock()
        self._stopping: str | None = None

    @contextmanager
    def holding(self, attempt: LiveAttempt) -> Iterator[None]:
        """List the attempt for as long as its thread has it; one that comes during a shutdown is aborted at once."""
        with self._lock:
            self._by_token[attempt.token] = attempt
            stopping = self._stopping
        if stopping:
            attempt.abort.set(stopping)
        try:
            yield
        finally:
            with self._lock:
                del self._by_token[attempt.token]

    def abort_all(self, reason: str) -> int:
        """Set every abort flag, of the attempts to come too, and say how many there were."""
        with self._lock:
            self._stopping = reason
            attempts = list(self._by_token.values())
        for attempt in attempts:
            attempt.abort.set(reason)
        return len(attempts)

    def tokens(self, queue: str) -> frozenset[str]:
        """Tokens in hand of one queue."""
        with self._lock:
            return frozenset(one.token for one in self._by_token.values() if one.queue == queue)

    def has_container(self, name: str) -> bool:
        """Whether a live attempt owns the container of this name."""
        with self._lock:
            return any(one.container == name for one in self._by_token.values())

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_token)
