"""The one-shot that a job spent is disarmed in this host's file, once the job's record is written (Q 5.1).

What does not work then is tried again until it does, as long as the claim of the job stands.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from typing import Any

from dispatch.operator_files.problems import OperatorFileError
from dispatch.queue.delays import Delays, no_delay
from dispatch.triggers.claims import Claims
from dispatch.triggers.lock import LockedError
from dispatch.triggers.one_shots import Armed, Changed, Spent, disarmed, one_shots_in, standing
from dispatch.triggers.writing import AT_ONCE, EditedMeanwhileError, Patience, document_of, rewrite
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.errors import OperationalError
from runs.oneshot import OneShot
from runs.record import Record
from runs.shape import iso

_TRIES = 5
_PAUSE_SECONDS = (0.1, 0.3)
# What may last: many records behind one another do not wait for it again and again.
_LASTING = frozenset({"locked", "file-invalid"})
_HASTE_SECONDS = 30.0
_AGAIN_SECONDS = 5.0


def _pause() -> None:
    # So that two workers that met at the lock do not meet again.
    time.sleep(random.uniform(*_PAUSE_SECONDS))  # noqa: S311


class _Came(Enum):
    """What came of a disarm."""

    DONE = auto()
    FAILED = auto()
    #: There is nothing of it in the file to disarm.
    CHANGED = auto()


class Disarmer:
    """Disarms in the file at `path` (None: this host has none) what the jobs of its records have spent.

    For one thread at a time; `clock` is monotonic.
    """

    def __init__(
        self,
        path: Path | None,
        claims: Claims,
        *,
        pause: Callable[[], None] = _pause,
        clock: Callable[[], float] = time.monotonic,
        reached: Delays = no_delay,
    ) -> None:
        self._path = path
        self._claims = claims
        self._patience = Patience(tries=_TRIES, pause=pause)
        self._clock = clock
        self._reached = reached
        self._hasty_until = self._again_at = float("-inf")
        # What the file was like when nothing was left to do; None: something may be.
        self._settled: tuple[int, ...] | None = None
        self._told: dict[tuple[OneShot, str], str] = {}

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
            self._failed(record.job_id, record.once, type(error).__name__)

    def catch_up(self) -> None:
        """Try again what did not work on this host: at boot, after each change of the file, and now and then.

        Costs a look at the file while nothing is left. Raises faults of Valkey; it may be repeated.
        """
        stamp = _stamp(self._path)
        if self._path is None or stamp == self._settled or self._clock() < self._again_at:
            return
        self._again_at = self._clock() + _AGAIN_SECONDS
        # Those that the file has as spent as well: whoever wrote that, it is noted before one is armed again.
        undone = self._claims.undone(_one_shots(self._path))
        came = [self._caught_up(once, job_id) for once, job_id in undone]
        # Of before: what changes the file meanwhile is looked at in its turn.
        self._settled = None if _Came.FAILED in came else stamp

    def _spend(self, once: OneShot, job_id: str, *, at: datetime) -> None:
        self._claims.record(once, job_id)
        spender = self._claims.spender(once, job_id)
        if spender is None:
            # Refused because of a job without a record: it may never run, and its record would disarm it.
            return
        is_hasty = self._clock() < self._hasty_until
        if (
            self._noted(once, spender, at=at, patience=AT_ONCE if is_hasty else self._patience)
            is _Came.FAILED
        ):
            self._settled = None

    def _caught_up(self, once: OneShot, job_id: str) -> _Came:
        if isinstance(look(self._path, once), Spent):
            # By a person, who may write where we may not; or by us, and we were killed.
            self._claims.note(once, job_id)
            return _Came.DONE
        return self._noted(once, job_id, at=datetime.now(UTC), patience=AT_ONCE)

    def _noted(self, once: OneShot, job_id: str, *, at: datetime, patience: Patience) -> _Came:
        """Disarm the entry, and keep with the claim what came of it."""
        came = self._disarm(once, job_id, at, patience)
        if came is _Came.DONE:
            self._claims.note(once, job_id)
        elif came is _Came.FAILED:
            self._claims.note_failed(once, job_id)
        return came

    def _disarm(self, once: OneShot, job_id: str, at: datetime, patience: Patience) -> _Came:
        if self._path is None:
            log.event("trigger_disarm_unavailable", jobId=job_id, triggerIndex=once.index)
            return _Came.CHANGED
        found: list[Armed | Spent | Changed] = []

        def change(document: Any) -> Any | None:
            found.append(standing(document, once))
            is_armed = isinstance(found[-1], Armed)
            return disarmed(document, once, job_id=job_id, at=iso(at)) if is_armed else None

        try:
            rewrite(self._path, change, patience=patience, reached=self._reached)
        except (OperatorFileError, OperationalError) as error:
            return self._failed(job_id, once, _reason_of(error))
        self._hasty_until = float("-inf")
        self._told.pop((once, job_id), None)
        match found[-1]:
            case Changed(reason=reason):
                self._failed(job_id, once, reason)
                return _Came.CHANGED
            case Spent():
                log.event("trigger_already_disarmed", jobId=job_id, triggerIndex=once.index)
            case Armed():
                log.event("trigger_disarmed", jobId=job_id, triggerIndex=once.index)
        return _Came.DONE

    def _failed(self, job_id: str, once: OneShot, reason: str) -> _Came:
        """Say it, and once only while it stays so."""
        if reason in _LASTING:
            self._hasty_until = self._clock() + _HASTE_SECONDS
        if self._told.get((once, job_id)) != reason:
            log.event("trigger_disarm_failed", jobId=job_id, triggerIndex=once.index, reason=reason)
        self._told[once, job_id] = reason
        return _Came.FAILED


def look(path: Path | None, once: OneShot) -> Armed | Spent | Changed:
    """Look how the entry stands in this host's file, which may be none or one that cannot be read."""
    if path is None:
        return Changed("no-file")
    try:
        return standing(document_of(path), once)
    except OperatorFileError:
        return Changed("unreadable")


def _one_shots(path: Path) -> tuple[OneShot, ...]:
    try:
        return one_shots_in(document_of(path))
    except OperatorFileError:
        return ()


def _stamp(path: Path | None) -> tuple[int, ...]:
    """Tell what shows that a file is another one or has been changed; nothing of one that is not there."""
    try:
        found = path.stat() if path else None
    except OSError:
        found = None
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size) if found else ()


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
