"""The doctor's findings for a page: looked for in the background once a minute at most, never waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dispatch.console.findings import Finding
from dispatch.doctor.examination import examine
from pidispatch_site.lazy_settings import current_folder

SECONDS_APART = 60.0


@dataclass(frozen=True, slots=True)
class Looked:
    """What the last look found (None: there was none yet), and how many seconds ago that was."""

    findings: tuple[Finding, ...] | None = None
    age_s: float = 0.0


class Rounds:
    """Looks with `examination` in a thread of its own when somebody asks and the last look is old."""

    def __init__(
        self,
        examination: Callable[[Mapping[str, str]], tuple[Finding, ...]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._examine = examination
        self._clock = clock
        self._lock = threading.Lock()
        self._environment: dict[str, str] = {}
        self._findings: tuple[Finding, ...] | None = None
        self._looked_at = 0.0
        self._thread: threading.Thread | None = None

    def look(self, environment: Mapping[str, str]) -> Looked:
        """Give what the last look under this environment found, and begin the next when it is time."""
        with self._lock:
            if self._environment != dict(environment):
                self._environment, self._findings = dict(environment), None
            now = self._clock()
            is_due = self._findings is None or now - self._looked_at >= SECONDS_APART
            if is_due and self._thread is None:
                self._begin(self._environment)
            return Looked(self._findings, now - self._looked_at)

    def wait(self, seconds: float) -> None:
        """Wait for the look that goes on, if one does."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _begin(self, environment: dict[str, str]) -> None:
        self._thread = threading.Thread(target=self._run, args=(environment,), name="doctor", daemon=True)
        self._thread.start()

    def _run(self, environment: dict[str, str]) -> None:
        findings: tuple[Finding, ...] = ()
        try:
            findings = self._examine(environment)
        finally:
            with self._lock:
                self._thread = None
                if self._environment == environment:
                    self._findings, self._looked_at = findings, self._clock()


ROUNDS = Rounds(lambda environment: examine(environment, folder=current_folder()))
