"""The one-shot that a job spent is disarmed in this host's file, once the job's record is written (Q 5.1)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dispatch.operator_files.problems import OperatorFileError
from dispatch.queue.delays import Delays, no_delay
from dispatch.triggers.claims import Claims
from dispatch.triggers.editing import Armed, Changed, Spent, disarmed, standing
from dispatch.triggers.lock import LockedError
from dispatch.triggers.writing import EditedMeanwhileError, Patience, document_of, rewrite
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.errors import OperationalError
from runs.oneshot import OneShot
from runs.record import Record
from runs.shape import iso

_TRIES = 5
_PAUSE_SECONDS = (0.1, 0.3)


def _pause() -> None:
    # So that two workers that met at the lock do not meet again.
    time.sleep(random.uniform(*_PAUSE_SECONDS))  # noqa: S311


class Disarmer:
    """Disarms in the file at `path` (None: this host has none) what the jobs of its records have spent."""

    def __init__(
        self,
        path: Path | None,
        claims: Claims,
        *,
        pause: Callable[[], None] = _pause,
        reached: Delays = no_delay,
    ) -> None:
        self._path = path
        self._claims = claims
        self._patience = Patience(tries=_TRIES, pause=pause)
        self._reached = reached

    def of_record(self, record: Record) -> None:
        """Disarm what the record's job has spent, if it was a one-shot: by any record of it, of any outcome.

        Raises faults of Valkey, so that the record is met again. Everything else that goes wrong is logged:
        the entry stays armed, and its claim keeps other jobs from it.
        """
        if record.once is None:
            return
        try:
            self._spend(record.once, record.job_id, at=record.ended_at or datetime.now(UTC))
        except VALKEY_FAULTS:
            raise
        except Exception as error:  # noqa: BLE001 - a disarm that fails must not keep records from being written
            _failed(record.job_id, record.once, type(error).__name__)

    def _spend(self, once: OneShot, job_id: str, *, at: datetime) -> None:
        self._claims.record(once, job_id)
        spender = self._claims.spender(once, job_id)
        if spender is None:
            # Refused because of a job without a record: it may never run, and its record would disarm it.
            return
        if self.spent(once, job_id=spender, at=at):
            self._claims.note(once, spender)

    def spent(self, once: OneShot, *, job_id: str, at: datetime) -> bool:
        """Disarm the entry, and say what came of it; whether the file says now that it is spent."""
        if self._path is None:
            log.event("trigger_disarm_unavailable", jobId=job_id, triggerIndex=once.index)
            return False
        found: list[Armed | Spent | Changed] = []

        def change(document: Any) -> Any | None:
            found.append(standing(document, once))
            is_armed = isinstance(found[-1], Armed)
            return disarmed(document, once, job_id=job_id, at=iso(at)) if is_armed else None

        try:
            rewrite(self._path, change, patience=self._patience, reached=self._reached)
        except (OperatorFileError, OperationalError) as error:
            return _failed(job_id, once, _reason_of(error))
        match found[-1]:
            case Changed(reason=reason):
                return _failed(job_id, once, reason)
            case Spent():
                log.event("trigger_already_disarmed", jobId=job_id, triggerIndex=once.index)
            case Armed():
                log.event("trigger_disarmed", jobId=job_id, triggerIndex=once.index)
        return True


def look(path: Path | None, once: OneShot) -> Armed | Spent | Changed:
    """Look how the entry stands in this host's file, which may be none or one that cannot be read."""
    if path is None:
        return Changed("no-file")
    try:
        return standing(document_of(path), once)
    except OperatorFileError:
        return Changed("unreadable")


def _failed(job_id: str, once: OneShot, reason: str) -> bool:
    log.event("trigger_disarm_failed", jobId=job_id, triggerIndex=once.index, reason=reason)
    return False


def _reason_of(error: OperatorFileError | OperationalError) -> str:
    match error:
        case OperatorFileError():
            return "file-invalid"
        case LockedError():
            return "locked"
        case EditedMeanwhileError():
            return "edited-meanwhile"
        case _:
            return "not-writable"
