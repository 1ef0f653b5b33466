"""The reaper in the worker's hands: once at boot before any container, then every minute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dispatch.gates.scopes import ScopeSlots
from dispatch.queue import containers
from dispatch.worker.live import LiveAttempts
from runs.reaper import Reaped, Reaper
from runs.workspace.jobdir import sweep_older_boots

if TYPE_CHECKING:
    import redis


class Reaping:
    """Keeps the engine clean of what no live run claims, and folders busy for what could not be removed.

    Until the engine has listed our containers once, `is_clean` is false and no container may be created.
    `answered` hears of each pass whether it did.
    """

    def __init__(
        self,
        reaper: Reaper,
        *,
        live: LiveAttempts,
        scopes: ScopeSlots,
        jobs_dir: Path,
        boot: str,
        answered: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._reaper = reaper
        self._live = live
        self._scopes = scopes
        self._jobs_dir = jobs_dir
        self._boot = boot
        self._answered = answered
        self._lock = threading.Lock()
        self._enumerated = False
        self._passes = 0
        self._is_swept = False
        self._busy: frozenset[str] = frozenset()

    def is_clean(self) -> bool:
        """Whether the engine listed our containers since this boot; tries again when it has not.

        Who waited for a pass under way takes its answer: a silent engine is not asked once for each waiter.
        """
        if self._enumerated:
            return True
        seen = self._passes
        with self._lock:
            if self._passes == seen:
                self._pass()
        return self._enumerated

    def reap(self) -> Reaped:
        """Do one pass; never raises for faults of the engine."""
        with self._lock:
            return self._pass()

    def _pass(self) -> Reaped:
        try:
            reaped = self._reaper.reap(is_live=self._live.has_container)
            self._answered(reaped.enumerated)
            if reaped.enumerated:
                self._keep_busy(reaped.busy_scopes)
                self._enumerated = True
                self._sweep_once(reaped)
            return reaped
        finally:
            self._passes += 1

    def _sweep_once(self, reaped: Reaped) -> None:
        """Remove older boots' job directories once no container of theirs can have one mounted."""
        if not self._is_swept and all(left.boot == self._boot for left in reaped.remaining):
            sweep_older_boots(self._jobs_dir, boot=self._boot)
            self._is_swept = True

    def _keep_busy(self, scopes: frozenset[str]) -> None:
        self._scopes.hold(scopes - self._busy)
        self._scopes.release(self._busy - scopes)
        self._busy = scopes


def forget_gone(
    client: redis.Redis, host_id: str, reaped: Reaped, *, is_live: Callable[[str], bool], now: datetime
) -> int:
    """Take containers off the host's list that its engine just showed to be gone; how many those were.

    When the engine could not list, only those that have outlived their own deadline, judged by `now` of the
    host's clock, which set it. What a run of this process claims, or the engine still shows, always stays.
    """
    listed = [one for one in containers.begun(client, host_id) if not is_live(one.name)]
    if reaped.enumerated:
        standing = {left.name for left in reaped.remaining}
        gone = [one.name for one in listed if one.name not in standing]
    else:
        gone = containers.outlived(listed, now_ms=round(now.timestamp() * 1000))
    containers.forget(client, host_id, gone)
    return len(gone)
