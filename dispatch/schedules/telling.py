"""What the log says of keeping schedules: each thing once, until it changes (Q 14)."""

from __future__ import annotations

import re

from dispatch.operator_files.live import places_of
from dispatch.operator_files.problems import OperatorFileError
from dispatch.schedules.agreement import Peer, Refused
from dispatch.schedules.placement import Placed
from dispatch.schedules.unserved import Unserved
from pidispatch_site import log

# A line of the log stays readable; `manage.py doctor` names all.
_MOST_PEERS = 10
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


class Teller:
    """Remembers what was said last; for one thread at a time."""

    def __init__(self) -> None:
        self._unserved: frozenset[Unserved] = frozenset()
        self._invalid = ""
        self._refused: Refused | None = None
        self._has_failed = False
        self._has_installed = False

    def invalid(self, error: OperatorFileError) -> None:
        """Say that a file that reads well asks for what this host has not, unless that is known."""
        reason = places_of(error)
        if reason != self._invalid:
            log.event("schedules_reload_invalid", reason=reason, kept=True)
        self._invalid = reason

    def placed(self, placed: Placed) -> None:
        """Say which schedules this host does not serve, unless that is known."""
        for one in placed.unserved:
            if one not in self._unserved:
                log.event("schedule_unserved", schedulerId=one.id, reason=one.reason.value)
        self._unserved, self._invalid = frozenset(placed.unserved), ""

    def refused(self, refused: Refused) -> None:
        """Say who disagrees, unless nothing has changed since."""
        self._has_failed = False
        if refused != self._refused:
            log.event(
                "cron_divergence_refused",
                mine=refused.mine or None,
                cronCount=refused.count,
                peers=[_shown(peer) for peer in refused.peers[:_MOST_PEERS]],
                reason=refused.reason,
            )
        self._refused = refused

    def failed(self, reason: str) -> None:
        """Say that it could not be done, the first time in a row."""
        if not self._has_failed:
            log.event("schedules_reload_failed", reason=reason)
        self._has_failed = True

    def done(self, *, peers: int, installed: int, removed: int, unserved: int, torn: int) -> None:
        """Say what was done (numbers of schedules), and how many hosts agree if there are any."""
        self._refused, self._has_failed = None, False
        if peers:
            log.event("cron_agreement", peers=peers)
        if self._has_installed:
            log.event("schedules_reloaded", installed=installed, removed=removed, torn=torn or None)
        else:
            log.event(
                "schedules_installed",
                installed=installed,
                removed=removed,
                unserved=unserved or None,
                torn=torn or None,
            )
        self._has_installed = True


def _shown(peer: Peer) -> dict[str, object]:
    """Name a peer; its fingerprint only where it is one, since others write it."""
    fingerprint = peer.fp_cron if _FINGERPRINT.fullmatch(peer.fp_cron) else "unreadable"
    shown = {"host": peer.host, "fpCron": fingerprint, "cronCount": peer.cron_count}
    return {field: value for field, value in shown.items() if value is not None}
