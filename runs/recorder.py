"""Takes a host's pending records off Valkey and writes them down: file, row, mirror, each tried on its own.

The bytes of a record are pushed to `records:pending:<host-id>` in the step that ends the attempt (contracts
3) and leave the list when file and row hold them and what follows from a record has been done: a crash at any
line repeats work and loses nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import redis
from django.db import connections

from hosts.keys import pending_records
from pidispatch_site.log import event
from runs import rows
from runs.files import Entry, FileFault, RecordFiles
from runs.mirror import Mirror
from runs.record import DamagedRecordError, Record, order
from runs.rows import RowFault

BATCH = 64
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0

Fault = FileFault | RowFault


class Backoff:
    """When to try again what failed: the pause doubles until something gets better. Monotonic seconds."""

    def __init__(self, *, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._pause = 0.0
        self._due_at = 0.0

    def is_due(self, now: float) -> bool:
        """Tell whether the pause is over."""
        return now >= self._due_at

    def worse(self, now: float) -> None:
        """Begin a longer pause."""
        self._pause = min(self._longest, self._pause * 2 or self._first)
        self._due_at = now + self._pause

    def better(self) -> None:
        """Forget the pauses."""
        self._pause = self._due_at = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Follows:
    """What is done upon records, by the thread that writes them down.

    `written` is told each record that file and row hold, before its entry leaves the list: after a crash it
    is told again. What it could not do holds no entry back: of faults it raises those of Valkey only.
    `between` is called after each look at the list, which there is every few seconds.
    """

    written: Callable[[Record], None] = lambda _record: None
    between: Callable[[], None] = lambda: None


NOTHING_FOLLOWS = Follows()


class Recorder:
    """Writes down the records of one host.

    What cannot be written stays at the front of the list; those entries are "held". New ones stand behind
    them, so that a full disk or one bad entry holds up no other, and nothing is kept in memory. An entry's
    trouble is logged once, when it is met first. `reached` is told each step's name (tests stop there).

    The mirror (None: this host is not one of a fleet) holds no entry back: what it did not take is tried
    again while this process lives, and else missing in what other hosts show, no more.
    """

    def __init__(
        self,
        client: redis.Redis,
        host_id: str,
        files: RecordFiles,
        *,
        mirror: Mirror | None = None,
        batch: int = BATCH,
        backoff: Backoff | None = None,
        follows: Follows = NOTHING_FOLLOWS,
        reached: Callable[[str], None] = lambda _point: None,
    ) -> None:
        self._client = client
        self._key = pending_records(host_id)
        self._files = files
        self._mirror = mirror
        self._batch = batch
        self._backoff = backoff or Backoff(first=FIRST_PAUSE_SECONDS, longest=LONGEST_PAUSE_SECONDS)
        self._held = 0
        self._retry_from = 0
        self._follows = follows
        self._reached = reached
        self._lock = threading.Lock()
        self._woken = threading.Event()

    def wake(self) -> None:
        """Have `run` look at the list now: something was pushed, or it shall stop."""
        self._woken.set()

    def run(
        self, stop: threading.Event, *, interval_seconds: float = 5.0, gather_seconds: float = 0.02
    ) -> None:
        """Drain at each `wake` and each interval until `stop` is set, and once more; a thread's body.

        A woken thread waits `gather_seconds` for what is pushed right behind: records that are written
        together cost a fraction of the processor and of the disk.
        """
        try:
            while not stop.is_set():
                self._drain_patiently()
                if self._woken.wait(interval_seconds):
                    stop.wait(gather_seconds)
                self._woken.clear()
            self._drain_patiently()
        finally:
            connections.close_all()

    def drain_once(self, now: float) -> int:
        """Write down everything new and what is due of the held; answer how many entries were finished.

        `now` is of the monotonic clock. Safe from any thread; a thread that ends closes its own Django
        connection. Raises redis-py's errors; the next call goes on where this one ended.
        """
        with self._lock:
            if self._mirror is not None:
                self._mirror.retry()
            return self._retry_held(now) + self._take_new(now)

    def _drain_patiently(self) -> None:
        try:
            self.drain_once(time.monotonic())
            with self._lock:
                self._follows.between()
        except redis.exceptions.RedisError:
            # Valkey's absence is told by the worker's beat; the list is still there afterwards.
            return
        except Exception as error:  # noqa: BLE001 - the loop of a daemon: it reports and goes on
            event("recorder_error", reason=type(error).__name__)

    def _take_new(self, now: float) -> int:
        done = 0
        while lines := self._entries(self._held, self._batch):
            settled = self._settle(lines, first_time=True)
            done += settled
            if settled < len(lines):
                if not self._held:
                    self._backoff.worse(now)
                self._held += len(lines) - settled
            if len(lines) < self._batch:
                break
        return done

    def _retry_held(self, now: float) -> int:
        """Try held entries again, a batch at a time, one round at most and only as long as it helps."""
        if not self._held or not self._backoff.is_due(now):
            return 0
        # Another host may have moved the list over meanwhile.
        self._held = min(self._held, self._client.llen(self._key))
        done, unseen, helped = 0, self._held, True
        while unseen and helped:
            start = self._retry_from % self._held
            lines = self._entries(start, min(self._batch, unseen, self._held - start))
            settled = self._settle(lines, first_time=False)
            helped = settled > 0
            done += settled
            unseen -= len(lines)
            self._held -= settled
            self._retry_from = start + len(lines) - settled
        if done:
            event("run_record_restored", count=done)
            self._backoff.better()
        if self._held:
            self._backoff.worse(now)
        return done

    def _entries(self, start: int, count: int) -> list[bytes]:
        return cast("list[bytes]", self._client.lrange(self._key, start, start + count - 1))

    def _settle(self, lines: Sequence[bytes], *, first_time: bool) -> int:
        """Write these entries down and take those off the list that are; answer how many are."""
        entries, damaged = _read(lines)
        newest = _newest(entries)
        faults = self._write(list(newest.values()), report=first_time)
        finished = [entry.line for entry in entries if not faults[entry.record.job_id]]
        finished += [line for line in damaged if self._set_aside(line, report=first_time)]
        self._reached("written")
        for job_id, entry in newest.items():
            if not faults[job_id]:
                self._follows.written(entry.record)
        self._reached("told")
        if finished:
            pipeline = self._client.pipeline(transaction=False)
            for line in finished:
                pipeline.lrem(self._key, 1, line)  # type: ignore[arg-type]
            pipeline.execute()
        self._reached("removed")
        return len(finished)

    def _write(self, entries: Sequence[Entry], *, report: bool) -> dict[str, list[Fault]]:
        """Try file, row and mirror of each job, each on its own; answer what failed of the two, by job id."""
        if not entries:
            return {}
        file_faults = self._files.write(entries)
        self._reached("filed")
        row_faults = rows.write([entry.record for entry in entries])
        if self._mirror is not None:
            # Before the entries leave the list: a crash right here repeats it.
            self._mirror.write(entries)
        faults: dict[str, list[Fault]] = {}
        for entry, file_fault, row_fault in zip(entries, file_faults, row_faults, strict=True):
            job_id = entry.record.job_id
            faults[job_id] = [fault for fault in (file_fault, row_fault) if fault is not None]
            for fault in faults[job_id] if report else ():
                missing = "file" if isinstance(fault, FileFault) else "row"
                event("run_record_failed", jobId=job_id, missing=missing, reason=fault.value)
        return faults

    def _set_aside(self, line: bytes, *, report: bool) -> bool:
        fault = self._files.set_aside(line)
        if report:
            event("run_record_failed", missing="record", reason=fault.value if fault else "unreadable")
        return fault is None


def _read(lines: Sequence[bytes]) -> tuple[list[Entry], list[bytes]]:
    entries, damaged = [], []
    for line in lines:
        try:
            entries.append(Entry(Record.from_bytes(line), line))
        except DamagedRecordError:
            damaged.append(line)
    return entries, damaged


def _newest(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Keep each job's newest entry: when that is held, the older ones are."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        known = newest.get(entry.record.job_id)
        if known is None or order(entry.record) > order(known.record):
            newest[entry.record.job_id] = entry
    return newest
