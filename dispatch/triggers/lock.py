"""The lock of the triggers file: `<file>.lock`, made exclusively by whoever rewrites it (Q 5.1).

A lock older than ten seconds is stale: its maker was killed. Two writers may judge the same lock stale, and
the second must not remove the first one's fresh lock in its place. So the maker of a lock keeps the kernel's
lock (flock) on it as long as it lives, and a stale one is removed only by who has got that kernel lock and
finds the very same file still there.

What stands in the lock is which kernel has it locked: where that is our own and it is free, its maker is gone
for certain, and nobody waits ten seconds. A worker that was killed in the middle finds its own lock so.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pidispatch_site import log
from pidispatch_site.errors import OperationalError

STALE_SECONDS = 10.0
# Readable by the other author, who must be able to judge it.
_MODE = 0o644
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_ID_BYTES = 64


class LockedError(OperationalError):
    """Somebody else is rewriting the file."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of `target` that was taken: the file at `path` whose inode `descriptor` has open."""

    target: Path
    path: Path
    descriptor: int

    @property
    def is_held(self) -> bool:
        """Whether the lock is still the one that was taken, and not removed by anybody."""
        return _is_at(self.path, self.descriptor)


@contextmanager
def held(target: Path) -> Iterator[Lock]:
    """Be the only one to rewrite the file; LockedError at once while another one does.

    A stale lock is removed, and the taking tried once more. Raises the OSError of a folder that takes no
    lock. A lock that cannot be removed afterwards is logged.
    """
    path = target.with_name(f"{target.name}.lock")
    descriptor = _created(path)
    if descriptor is None and _removed_stale(path):
        descriptor = _created(path)
    if descriptor is None:
        raise LockedError(
            f"{target} is being rewritten by somebody else, who has {path.name}. Nothing was changed;"
            f" try again.{_stuck(path)}"
        )
    lock = Lock(target, path, descriptor)
    try:
        yield lock
    finally:
        _release(lock)


def _stuck(path: Path) -> str:
    """Say what to do about a lock that is no lock of ours, or that we could not take away."""
    try:
        found = path.lstat()
    except OSError:
        return ""
    age = abs(time.time() - found.st_mtime)
    if stat.S_ISREG(found.st_mode) and age <= STALE_SECONDS:
        return ""
    what = "is no lock file" if not stat.S_ISREG(found.st_mode) else f"is {age:.0f} s old"
    return f" {path.name} {what}: if nobody is at it, remove it by hand."


def _created(path: Path) -> int | None:
    """Make the lock file and lock it; None when somebody has it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    except FileExistsError:
        return None
    if _is_locked(descriptor) and _is_at(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _is_locked(descriptor: int) -> bool:
    """Get the kernel's lock; not where we have been stopped since, and somebody has judged us dead."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without such locks: nobody else gets one there either, and so removes nothing.
        return True
    with suppress(OSError):
        os.write(descriptor, _kernel())
    return True


def _removed_stale(path: Path) -> bool:
    """Remove a lock whose maker is gone; whether there is none now, as far as this look goes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        return _removed(path, descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _removed(path: Path, descriptor: int) -> bool:
    age = time.time() - os.fstat(descriptor).st_mtime
    # One that was made in the future was made before the clock was set back.
    if abs(age) <= STALE_SECONDS and not _is_of_this_kernel(descriptor):
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not _is_at(path, descriptor):
        # Released, or removed as stale by another one: whoever comes first has it now.
        return True
    path.unlink()
    log.event("triggers_lock_stale_taken", ageMs=round(age * 1000))
    return True


def _is_of_this_kernel(descriptor: int) -> bool:
    mine = _kernel()
    return bool(mine) and os.read(descriptor, _BOOT_ID_BYTES) == mine


def _kernel() -> bytes:
    """Name the running kernel, whose locks hold for all of its processes, in containers too."""
    try:
        return _BOOT_ID.read_bytes()[:_BOOT_ID_BYTES].strip()
    except OSError:
        return b""


def _release(lock: Lock) -> None:
    try:
        if lock.is_held:
            lock.path.unlink()
    except OSError:
        log.event("triggers_lock_stuck")
    finally:
        os.close(lock.descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        there = path.lstat()
    except OSError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
