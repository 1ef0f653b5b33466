"""The bytes of an operator's file, read so that nothing that stands under its name can hold the reader up."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dispatch.operator_files.strict_json import MAX_BYTES

# As much memory is taken for each read, however little there is to read.
_CHUNK = 1024 * 1024


class NoRegularFileError(OSError):
    """There is a folder, a pipe, a device: nothing that has a content and an end of it."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[int, os.stat_result]]:
    """Open the file for `read_from`, with what it is; OSError, NoRegularFileError included."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NoRegularFileError(errno.EINVAL, "it is no regular file")
        yield descriptor, found
    finally:
        os.close(descriptor)


def read_from(descriptor: int) -> bytes:
    """Read all of it, of a larger one `MAX_BYTES` and one more; OSError, never a part of what is there.

    Some file systems (FUSE, /proc) have regular files without an answer yet: that is BlockingIOError. A file
    object of Python would answer None, or the part that had come before.
    """
    parts: list[bytes] = []
    left = MAX_BYTES + 1
    while left and (part := os.read(descriptor, min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
