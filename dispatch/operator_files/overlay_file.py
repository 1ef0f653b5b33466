"""The file of the settings overlay: read at each job start, edited by whole replacement under a lock."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dispatch.operator_files import overlay, strict_json
from dispatch.operator_files.content import opened, read_from
from dispatch.operator_files.overlay import EMPTY, Overlay
from dispatch.operator_files.overlay_edit import changed, rendered
from dispatch.operator_files.problems import OperatorFileError, Problem
from pidispatch_site.errors import OperationalError

_PRIVATE = 0o600
_NOTHING = b"{}\n"
_ROOT = 0
# An editor that writes in place is done within a look or two.
_SETTLE_SECONDS = 0.15
_SETTLE_LOOKS = 10
_LOCK_SECONDS = 10.0
_LOCK_RETRY_SECONDS = 0.02


def _settle() -> None:
    time.sleep(_SETTLE_SECONDS)


def read(path: Path, *, settle: Callable[[], None] = _settle) -> Overlay:
    """Read the file; a missing one, a symbolic link to nothing included, is `EMPTY`.

    OperatorFileError for everything else that gives no overlay: no permission, no regular file, a parent that
    is no directory, a content that is not allowed. Such a content is looked at again after each `settle`, at
    most ten times, until two looks are alike, since somebody may be writing the file in place.
    """
    seen = _load(path)
    for _ in range(_SETTLE_LOOKS):
        try:
            return _parsed(seen, path)
        except OperatorFileError:
            settle()
            before, seen = seen, _load(path)
            if seen == before:
                raise
    return _parsed(seen, path)


def edit(
    path: Path,
    *,
    set: Mapping[str, str],  # noqa: A002 - the word of the command
    unset: Sequence[str],
    lock_seconds: float = _LOCK_SECONDS,
) -> Overlay:
    """Change keys of the file, all of them or none, and answer what it then holds.

    Both are as for `overlay_edit.changed`. The file changes at one instant and keeps mode and owner; a
    symbolic link goes on pointing at it. A file that is not there is made, its owner's alone. Another edit is
    waited for up to `lock_seconds`. ConfigurationError when a change or the result is not allowed,
    OperationalError when the file cannot be written; nothing has changed then.
    """
    target = Path(os.path.realpath(path))
    try:
        with _locked(target, lock_seconds):
            return _edit(path, target, set, unset)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OperationalError(f"{path} cannot be written: {reason}. Nothing was changed.") from error


def _edit(path: Path, target: Path, to_set: Mapping[str, str], to_unset: Sequence[str]) -> Overlay:
    content, name = _load(path), str(path)
    before = {} if content is None else strict_json.load(content, name=name)
    if not isinstance(before, dict):
        # Refused, in the words that a reader of the file has for it.
        return overlay.of_document(before, name=name)
    after = changed(before, to_set=to_set, to_unset=to_unset, name=name)
    new = rendered(after, name=name)
    found = overlay.parse(new, name=name)
    if new != (content or _NOTHING):
        _replace(target, new)
    return found


def _parsed(content: bytes | None, path: Path) -> Overlay:
    return EMPTY if content is None else overlay.parse(content, name=str(path))


def _load(path: Path) -> bytes | None:
    """Read what stands there, None when nothing does; OperatorFileError, also where a pipe would block."""
    try:
        with opened(path) as (descriptor, _):
            return read_from(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or type(error).__name__) from error


def _unreadable(path: Path, reason: str) -> OperatorFileError:
    return OperatorFileError(str(path), [Problem("", f"cannot be read: {reason}")])


@contextmanager
def _locked(target: Path, seconds: float) -> Iterator[None]:
    """Be the only one to edit the file. The lock is a file beside it, since the file itself is replaced."""
    lock = target.with_name(f".{target.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
    try:
        _give(descriptor, target.parent.stat())
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
            time.sleep(_LOCK_RETRY_SECONDS)


def _replace(target: Path, content: bytes) -> None:
    """Put the content in the file's place; it is on the disk when this returns."""
    # Ours alone while we hold the lock, so what is there was left by one who was killed.
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123
            _dress(descriptor, target)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync(target.parent)


def _dress(descriptor: int, target: Path) -> None:
    """Give the new file the mode and the owner of the one that it replaces, of the directory for a first."""
    try:
        old = target.stat()
    except FileNotFoundError:
        _give(descriptor, target.parent.stat())
        return
    if os.geteuid() not in {_ROOT, old.st_uid}:
        # Ours would be one that the worker may not read, and every job would be refused.
        raise OperationalError(
            f"{target} belongs to another user (uid {old.st_uid}). Nothing was changed;"
            " run this as that user."
        )
    os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _give(descriptor: int, like: os.stat_result) -> None:
    """Let a file that root made belong to the user whose directory it is in: the worker is that user."""
    if os.geteuid() == _ROOT:
        os.fchown(descriptor, like.st_uid, like.st_gid)


def _sync(folder: Path) -> None:
    # The change is made; a file system that does not sync folders does not undo it.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
