"""The lock of those who edit an operator's file: a file beside it, since the file itself is replaced."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dispatch.operator_files.replacing import give
from pidispatch_site.errors import OperationalError

SECONDS = 10.0
_RETRY_SECONDS = 0.02
_PRIVATE = 0o600


@contextmanager
def locked(target: Path, seconds: float) -> Iterator[None]:
    """Be the only one to edit the file; another one is waited for up to `seconds`.

    OperationalError where that does not end, OSError for a folder that takes no lock. The kernel lets go of
    the lock of whoever is killed.
    """
    lock = target.with_name(f".{target.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
    try:
        give(descriptor, target.parent.stat())
        _wait_for(descriptor, target, seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, target: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise OperationalError(
                    f"Another command has been editing {target} for {seconds:.0f} s. Nothing was"
                    " changed; end that command, then try again."
                ) from error
            time.sleep(_RETRY_SECONDS)
