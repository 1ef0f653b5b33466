"""What a host tells the fleet of the schedules in its file: fingerprint and number, or nothing (Q 10.3)."""

from __future__ import annotations

from dispatch.operator_files.live import LiveFile
from dispatch.schedules.fingerprint import fingerprint
from dispatch.triggers.entries import Triggers


class Opinion:
    """The opinion of the host with this file, in the zone of this name; any thread may ask.

    It abstains while the file cannot be taken, though the last good version goes on. No schedules at all are
    an opinion.
    """

    def __init__(self, file: LiveFile[Triggers], *, zone: str) -> None:
        self._file = file
        self._zone = zone
        self._known: tuple[int, str] = (-1, "")

    def fingerprint(self) -> str:
        """Sixteen hex digits of every schedule in the file, served here or not; blank: abstains."""
        # The version first: what is taken over meanwhile has another one, and is looked at the next time.
        version, triggers = self._file.version, self._file.current
        known, found = self._known
        if known != version:
            found = fingerprint(triggers.cron, zone=self._zone)
            self._known = version, found
        return found if self._file.is_current else ""

    def count(self) -> int | None:
        """Count the schedules in the file; None: abstains."""
        return len(self._file.current.cron) if self._file.is_current else None
