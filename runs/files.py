"""The record files: one JSON line per job in the logs directory; the run table is made from them.

A file appears whole or not at all (temporary file, fsync, rename, fsync of the directory) and is replaced
only by newer news of the same job. What the file system refuses is answered as a `FileFault`, never raised.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from runs.record import MAX_RECORD_BYTES, DamagedRecordError, Record, order

UNREADABLE = "unreadable"
TEMPORARY = ".tmp"
MAX_STEM_CHARACTERS = 200

_SYNC_THREADS = 8
_WORTH_THREADS = 4
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")


class FileFault(StrEnum):
    """Why a file could not be written; safe to log."""

    DISK_FULL = "disk-full"
    READ_ONLY = "read-only"
    NOT_PERMITTED = "not-permitted"
    FOLDER_MISSING = "folder-missing"
    IO_ERROR = "io-error"


_FAULTS = {
    errno.ENOSPC: FileFault.DISK_FULL,
    errno.EDQUOT: FileFault.DISK_FULL,
    errno.EFBIG: FileFault.DISK_FULL,
    errno.EROFS: FileFault.READ_ONLY,
    errno.EACCES: FileFault.NOT_PERMITTED,
    errno.EPERM: FileFault.NOT_PERMITTED,
    errno.ENOENT: FileFault.FOLDER_MISSING,
    errno.ENOTDIR: FileFault.FOLDER_MISSING,
}


def fault_of(error: OSError) -> FileFault:
    """Name an error of the file system by its number; its text can hold paths."""
    return _FAULTS.get(error.errno or 0, FileFault.IO_ERROR)


def stem(job_id: str) -> str:
    """Turn a job id into a file name's stem (Q 15.1); two ids can have the same one.

    Counted in UTF-16 units as the reference does, so that one emoji becomes `__`. An id longer than any of
    ours is shortened and told apart by a hash.
    """
    if not job_id:
        return "unknown-job"
    units = "".join("__" if letter > "\uffff" else letter for letter in job_id)
    name = _FOREIGN.sub("_", units)
    return name if len(name) <= MAX_STEM_CHARACTERS else name[: MAX_STEM_CHARACTERS - 13] + _mark(job_id)


def marked_stem(job_id: str) -> str:
    """Give the stem for when the plain one is another job's: no two ids share it."""
    return stem(job_id) + _mark(job_id)


def _mark(job_id: str) -> str:
    # `~` is in no stem, so a marked name never meets another id's plain one.
    return "~" + hashlib.sha256(job_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Entry:
    """A record and the line it came as, which the file keeps."""

    record: Record
    line: bytes


@dataclass(frozen=True, slots=True)
class _Staged:
    descriptor: int
    temporary: Path
    target: Path


class RecordFiles:
    """The files of one logs directory; one worker per directory writes, anybody may read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def log_path(self, job_id: str) -> Path:
        """Where the job's raw output is appended when it is kept; ids with one stem share it (Q 15.2)."""
        return self.folder / f"{stem(job_id)}.log"

    def find(self, job_id: str) -> Record | None:
        """Read what is kept of a job; None when nothing readable is."""
        with suppress(OSError, DamagedRecordError):
            kept = _load(self._path_of(job_id))
            return kept if kept is not None and kept.job_id == job_id else None
        return None

    def scan(self) -> Iterator[tuple[str, Record | DamagedRecordError | FileFault]]:
        """Read every record file: its name, and the record or why there is none.

        Raises OSError when the directory itself cannot be read.
        """
        with os.scandir(self.folder) as listing:
            names = sorted(item.name for item in listing if item.name.endswith(".json") and item.is_file())
        for name in names:
            try:
                kept = _load(self.folder / name)
            except DamagedRecordError as damage:
                yield name, damage
            except OSError as error:
                yield name, fault_of(error)
            else:
                if kept is not None:
                    yield name, kept

    def write(self, entries: Sequence[Entry]) -> list[FileFault | None]:
        """Make the files hold these records, or newer ones; answer for each in turn, None when it does.

        Give at most one entry per job. All are on the disk when this returns; the directory is synced once.
        """
        answers: list[FileFault | None] = []
        staged: dict[int, _Staged] = {}
        for entry in entries:
            fault, file = self._try_stage(entry, {item.target for item in staged.values()})
            if file is not None:
                staged[len(answers)] = file
            answers.append(fault)
        for index, fault in zip(staged, _commit_all(list(staged.values())), strict=True):
            answers[index] = fault
        placed = [index for index in staged if answers[index] is None]
        if placed:
            fault = _sync_folder(self.folder)
            for index in placed:
                answers[index] = fault
        return answers

    def set_aside(self, line: bytes) -> FileFault | None:
        """Keep bytes that are no record, for a person, where nothing reads them again."""
        folder = self.folder / UNREADABLE
        target = folder / f"{hashlib.sha256(line).hexdigest()[:16]}.json"
        try:
            fault = _commit(_stage(line, target))
        except OSError as error:
            return fault_of(error)
        return fault or _sync_folder(folder)

    def sweep(self) -> None:
        """Remove what a killed worker left half written; only at boot, before anything writes."""
        for folder in (self.folder, self.folder / UNREADABLE):
            for leftover in folder.glob(f".*{TEMPORARY}"):
                with suppress(OSError):
                    leftover.unlink()

    def _try_stage(self, entry: Entry, taken: set[Path]) -> tuple[FileFault | None, _Staged | None]:
        try:
            target = self._path_of(entry.record.job_id, taken)
            if _holds(target, entry.record):
                return None, None
            return None, _stage(entry.line, target)
        except OSError as error:
            return fault_of(error), None

    def _path_of(self, job_id: str, taken: set[Path] | frozenset[Path] = frozenset()) -> Path:
        """Choose the job's file: the plain name, or a marked one when that is another job's or damaged."""
        plain = self.folder / f"{stem(job_id)}.json"
        marked = self.folder / f"{marked_stem(job_id)}.json"
        if plain in taken or marked.exists():
            return marked
        try:
            kept = _load(plain)
        except (DamagedRecordError, IsADirectoryError):
            return marked
        return plain if kept is None or kept.job_id == job_id else marked


def _load(path: Path) -> Record | None:
    """Read one file; None when there is none. Raises DamagedRecordError, or OSError if it cannot be read."""
    try:
        # Not blocking: whatever stands there, even a pipe, must not stop the recorder.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
            line = file.read(MAX_RECORD_BYTES + 2)
    except FileNotFoundError:
        return None
    return Record.from_bytes(line.removesuffix(b"\n"))


def _holds(path: Path, record: Record) -> bool:
    """Tell whether the file already says as much as the record."""
    try:
        kept = _load(path)
    except DamagedRecordError:
        return False
    return kept is not None and order(kept) >= order(record)


def _stage(line: bytes, target: Path) -> _Staged:
    temporary = target.parent / f".{secrets.token_hex(8)}{TEMPORARY}"
    descriptor = _create(temporary)
    try:
        # Inside JSON a newline is only space between values; the file is one line.
        _write_all(descriptor, line.replace(b"\n", b" ") + b"\n")
    except OSError:
        _discard(descriptor, temporary)
        raise
    return _Staged(descriptor, temporary, target)


def _create(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _commit_all(files: Sequence[_Staged]) -> list[FileFault | None]:
    """Commit files side by side: a file system writes its journal once for all who wait at that moment."""
    if len(files) < _WORTH_THREADS:
        return [_commit(file) for file in files]
    with ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix="records") as threads:
        return list(threads.map(_commit, files))


def _commit(file: _Staged) -> FileFault | None:
    try:
        os.fsync(file.descriptor)
        file.temporary.replace(file.target)
    except OSError as error:
        _discard(file.descriptor, file.temporary)
        return fault_of(error)
    os.close(file.descriptor)
    return None


def _discard(descriptor: int, temporary: Path) -> None:
    os.close(descriptor)
    with suppress(OSError):
        temporary.unlink()


def _sync_folder(folder: Path) -> FileFault | None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        return fault_of(error)
    try:
        os.fsync(descriptor)
    except OSError as error:
        return fault_of(error)
    finally:
        os.close(descriptor)
    return None
