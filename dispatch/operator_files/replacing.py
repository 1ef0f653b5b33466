"""An operator's file replaced as a whole: readers see the old content or the new one, never a part."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pidispatch_site.errors import OperationalError

_PRIVATE = 0o600
_ROOT = 0


def replace(
    target: Path, content: bytes, *, temporary: Path, before_rename: Callable[[], None] = lambda: None
) -> None:
    """Put the content in the file's place, with its mode and owner; it is on the disk when this returns.

    `temporary` is a name in the same folder that nothing has; nothing has it afterwards either. What
    `before_rename` raises comes through, and nothing has changed then. A file that is not there is made, its
    owner's alone. OperationalError for a file of another user, OSError for what the file system refuses.
    """
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123
            _dress(descriptor, target)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        before_rename()
        _rename(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync(target.parent)


def unwritable(path: Path, error: OSError) -> OperationalError:
    """Say that the file system refused, and what to do about a file that nothing can take the place of."""
    reason = error.strerror or type(error).__name__
    mend = " It is mounted by itself: mount its folder instead." if error.errno == errno.EBUSY else ""
    return OperationalError(f"{path} cannot be written: {reason}. Nothing was changed.{mend}")


def give(descriptor: int, like: os.stat_result) -> None:
    """Let a file that root made belong to the user whose directory it is in: the worker is that user."""
    if os.geteuid() == _ROOT:
        os.fchown(descriptor, like.st_uid, like.st_gid)


def _rename(temporary: Path, target: Path) -> None:
    try:
        temporary.replace(target)
    except PermissionError:
        # Once more (Q 5.1): who looks through files, as scanners do, has them for an instant.
        temporary.replace(target)


def _dress(descriptor: int, target: Path) -> None:
    """Give the new file the mode and the owner of the one that it replaces, of the directory for a first."""
    try:
        old = target.stat()
    except FileNotFoundError:
        give(descriptor, target.parent.stat())
        return
    if os.geteuid() not in {_ROOT, old.st_uid}:
        # Ours would be one that the worker may not read.
        raise OperationalError(
            f"{target} belongs to another user (uid {old.st_uid}). Nothing was changed;"
            " run this as that user."
        )
    os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _sync(folder: Path) -> None:
    # The change is made; a file system that does not sync folders does not undo it.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
