"""What the operator's files say now, followed while the worker lives, and who has to hear of a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from dispatch.effective import Spending, spending_of
from dispatch.money.windows import Caps
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.overlay import EMPTY, Overlay
from dispatch.operator_files.pause_windows import PauseWindow
from dispatch.operator_files.scoped_limits import NO_LIMITS, ScopedLimits
from dispatch.queue.waiters import WaitReason
from dispatch.worker.followed import OperatorFiles, tell_unknown, tell_unreached
from dispatch.worker.slots import Slots
from dispatch.worker.waking import Waking

_LOOKS_FOR_A_MISSING_FILE = 20
_LOOK_AGAIN_SECONDS = 0.1

# Whoever slept through an edit that was made while no worker lived is looked at once.
_AT_BOOT = frozenset({WaitReason.PAUSE_WINDOW, WaitReason.CAP})


@dataclass(slots=True, kw_only=True)
class Rules:
    """One worker's view of them. `configured` is its concurrency where the overlay does not name one.

    `version` counts the changes: who decided under an older one and then fell asleep may have missed the
    waking.
    """

    slots: Slots
    configured: int
    files: OperatorFiles = field(default_factory=OperatorFiles)
    version: int = 0
    _due: set[WaitReason] = field(default_factory=lambda: set(_AT_BOOT))
    _anew: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.files.overlay:
            self.apply_concurrency(self.files.overlay.current)

    def pause_windows(self) -> tuple[PauseWindow, ...]:
        """Answer the windows in force."""
        return self.files.windows.current if self.files.windows else ()

    def scoped_limits(self) -> ScopedLimits:
        """Answer the scoped limits in force."""
        return self.files.limits.current if self.files.limits else NO_LIMITS

    def overlay(self) -> Overlay:
        """Read the settings as they stand in their file; OperatorFileError when they do not load."""
        overlay, followed = self.files.read_overlay(), self.files.overlay
        for _ in range(_LOOKS_FOR_A_MISSING_FILE):
            if not followed or overlay != EMPTY or followed.current == EMPTY:
                break
            # An editor may have moved it away to write another: without it, caps would be those of the
            # environment. That it is gone is believed once the thread that follows it says so too.
            time.sleep(_LOOK_AGAIN_SECONDS)
            overlay = self.files.read_overlay()
        if followed and overlay != followed.current:
            # They may be taken back before the next look, which then sees no change: whoever falls asleep
            # because of them has to look again.
            self._count_change()
        return overlay

    def spending(self, configured: Spending) -> Spending:
        """Tell what all jobs may spend as of the last look at the settings, for who says so."""
        return spending_of(configured, self.files.overlay.current if self.files.overlay else EMPTY)

    def apply_concurrency(self, overlay: Overlay) -> None:
        """Give the host as many slots as the overlay says, or the configuration."""
        limit = overlay.concurrency or self.configured
        if limit != self.slots.limit:
            self.slots.resize(limit)

    def wake(self, reasons: Collection[WaitReason]) -> None:
        """Ask that those who sleep for one of these are looked at."""
        with self._lock:
            self._due.update(reasons)
            self._anew |= WaitReason.CAP in reasons

    def freed(self) -> None:
        """Tell that a start was paid back: who is parked looks again, and who is just falling asleep, too."""
        self._count_change()
        self.wake({WaitReason.CAP})

    def look(self) -> None:
        """Look at the files once, and note whom a change concerns; for one thread that waits for nobody."""
        self.wake(self._poll())

    def rouse(self, waking: Waking, now: Callable[[], datetime]) -> None:
        """Wake who is concerned by what was noted, some at a time; for one thread.

        `now` is Valkey's time. What failed stays due, and what is noted meanwhile is due again.
        """
        due, anew = self._taken()
        try:
            if WaitReason.CAP in due:
                if anew:
                    waking.parked_anew()
                if not waking.parked():
                    due.discard(WaitReason.CAP)
            if WaitReason.PAUSE_WINDOW in due:
                waking.paused(self.pause_windows(), now())
                due.discard(WaitReason.PAUSE_WINDOW)
        finally:
            with self._lock:
                self._due |= due

    def _taken(self) -> tuple[set[WaitReason], bool]:
        with self._lock:
            due, anew = self._due, self._anew
            self._due, self._anew = set(), False
        return due, anew

    def _poll(self) -> set[WaitReason]:
        files, changed = self.files, set[WaitReason]()
        if files.windows and files.windows.poll():
            tell_unreached("windows", files.windows.current)
            changed.add(WaitReason.PAUSE_WINDOW)
        if files.limits and files.limits.poll():
            tell_unreached("limits", files.limits.current.rows)
            changed.add(WaitReason.CAP)
        if files.overlay and self._poll_overlay(files.overlay):
            changed.add(WaitReason.CAP)
        if changed:
            self._count_change()
        return changed

    def _poll_overlay(self, overlay: LiveFile[Overlay]) -> bool:
        """Look at the settings; whether they bound spending otherwise now."""
        before = overlay.current
        if not overlay.poll():
            return False
        tell_unknown(overlay.current)
        self.apply_concurrency(overlay.current)
        return _bounds(before) != _bounds(overlay.current)

    def _count_change(self) -> None:
        with self._lock:
            self.version += 1


def _bounds(overlay: Overlay) -> Spending:
    return spending_of(Spending(caps=Caps()), overlay)
