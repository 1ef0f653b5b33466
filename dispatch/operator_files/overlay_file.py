"""The file of the settings overlay: read at each job start, edited by whole replacement under a lock."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dispatch.operator_files import overlay, strict_json
from dispatch.operator_files.content import opened, read_from
from dispatch.operator_files.overlay import EMPTY, Overlay
from dispatch.operator_files.overlay_edit import changed, rendered
from dispatch.operator_files.problems import OperatorFileError, Problem
from dispatch.operator_files.replacing import give, replace
from pidispatch_site.errors import OperationalError

_PRIVATE = 0o600
_NOTHING = b"{}\n"
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
        # Ours alone while we hold the lock, so what is there was left by one who was killed.
        temporary = target.with_name(f".{target.name}.tmp")
        temporary.unlink(missing_ok=True)
        replace(target, new, temporary=temporary)
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
            time.sleep(_LOCK_RETRY_SECONDS)
