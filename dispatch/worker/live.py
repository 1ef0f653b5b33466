"""The attempts this process has in hand, as its other threads see them: to abort, to beat for, to spare."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dispatch.queue.popper import Claimed
from runs.abort import Abort, AbortReason


@dataclass(slots=True, kw_only=True)
class LiveAttempt:
    """One attempt: what was claimed, the container name that it has or will have, and its abort flag.

    `container` is None while none can be meant: the attempt's own thread names it before it asks for it.
    `has_begun` is set by the attempt's own thread right after its job became started.
    """

    claimed: Claimed
    container: str | None = None
    abort: Abort = field(default_factory=Abort)
    has_begun: bool = False


class LiveAttempts:
    """Every attempt between its claim and its last transition; safe to read from any thread."""

    def __init__(self) -> None:
        self._by_token: dict[str, LiveAttempt] = {}
        self._lock = threading.Lock()
        self._stopping: AbortReason | None = None

    @contextmanager
    def holding(self, attempt: LiveAttempt) -> Iterator[None]:
        """List the attempt while its thread has it; one that comes during a shutdown is aborted at once."""
        token = attempt.claimed.token
        with self._lock:
            self._by_token[token] = attempt
            stopping = self._stopping
        if stopping:
            attempt.abort.set(stopping)
        try:
            yield
        finally:
            with self._lock:
                del self._by_token[token]

    def abort_all(self, reason: AbortReason) -> int:
        """Set every abort flag, of the attempts to come too, and say how many there were."""
        with self._lock:
            self._stopping = reason
        attempts = self.attempts()
        for attempt in attempts:
            attempt.abort.set(reason)
        return len(attempts)

    def tokens(self, queue: str) -> frozenset[str]:
        """Tokens in hand of one queue, begun or not."""
        return frozenset(one.claimed.token for one in self.attempts() if one.claimed.queue == queue)

    def begun(self) -> tuple[Claimed, ...]:
        """List the jobs that this process has started and not ended."""
        return tuple(one.claimed for one in self.attempts() if one.has_begun)

    def has_container(self, name: str) -> bool:
        """Whether a live attempt owns the container of this name."""
        return any(one.container == name for one in self.attempts())

    def attempts(self) -> tuple[LiveAttempt, ...]:
        """List them as they are now, begun or not."""
        with self._lock:
            return tuple(self._by_token.values())

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_token)
