"""The raw log of a job as the web process reads it: its end for a page, or all of it, piece by piece."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runs.files import FileFault, RecordFiles, fault_of
from runs.printed import harmless

TAIL_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log; `size` (bytes) is that of all of it."""

    text: str
    size: int

    @property
    def is_cut(self) -> bool:
        """Whether something stands before it."""
        return self.size > TAIL_BYTES


class LogReadError(Exception):
    """The log is there and cannot be read; the message is a token."""


def tail(folder: Path, job_id: str) -> Tail | None:
    """Read the end of a job's log in this folder; None when there is none. Raises LogReadError."""
    descriptor = _opened(folder, job_id)
    if descriptor is None:
        return None
    try:
        size = os.fstat(descriptor).st_size
        data = os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES))
    except OSError as error:
        raise LogReadError(fault_of(error).value) from error
    finally:
        os.close(descriptor)
    # Of a line, or a letter, that was cut through nothing is shown.
    whole = data.partition(b"\n")[2] if size > TAIL_BYTES and b"\n" in data else data
    return Tail(harmless(whole), size)


def pieces(folder: Path, job_id: str) -> Iterator[bytes] | None:
    """Give all of the log as it is now, raw; None when there is none. Raises LogReadError."""
    descriptor = _opened(folder, job_id)
    return None if descriptor is None else _pieces(descriptor)


def _pieces(descriptor: int) -> Iterator[bytes]:
    with open(descriptor, "rb") as file:
        # A job may go on printing faster than it is read.
        left = os.fstat(descriptor).st_size
        while left > 0 and (piece := file.read(min(left, _CHUNK_BYTES))):
            left -= len(piece)
            yield piece


def _opened(folder: Path, job_id: str) -> int | None:
    path = RecordFiles(folder).log_path(job_id)
    try:
        # Not through a link, and not blocking: whatever stands there, even a pipe, must not stop a page.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogReadError(fault_of(error).value) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise LogReadError(FileFault.IO_ERROR.value)
