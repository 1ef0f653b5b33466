"""The file of the settings overlay: read at each job start, edited by whole replacement under a lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dispatch.operator_files import overlay
from dispatch.operator_files.content import opened, read_from
from dispatch.operator_files.edit_lock import SECONDS
from dispatch.operator_files.overlay import EMPTY, Overlay
from dispatch.operator_files.overlay_edit import changed
from dispatch.operator_files.problems import OperatorFileError, Problem
from dispatch.operator_files.rewriting import Rewriter

REWRITER = Rewriter(parse=overlay.parse, empty={})
# An editor that writes in place is done within a look or two.
_SETTLE_SECONDS = 0.15
_SETTLE_LOOKS = 10


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
    lock_seconds: float = SECONDS,
) -> Overlay:
    """Change keys of the file, all of them or none, and answer what it then holds.

    Both are as for `overlay_edit.changed`. The file changes at one instant and keeps mode and owner; a
    symbolic link goes on pointing at it. A file that is not there is made, its owner's alone. Another edit is
    waited for up to `lock_seconds`. ConfigurationError when a change or the result is not allowed,
    OperationalError when the file cannot be written; nothing has changed then.
    """
    change = partial(_edited, name=str(path), to_set=set, to_unset=unset)
    return _parsed(REWRITER.rewrite(path, change, lock_seconds=lock_seconds).after, path)


def _edited(
    before: Any, *, name: str, to_set: Mapping[str, str], to_unset: Sequence[str]
) -> Mapping[str, Any]:
    if not isinstance(before, dict):
        # Refused, in the words that a reader of the file has for it.
        overlay.of_document(before, name=name)
    return changed(before, to_set=to_set, to_unset=to_unset, name=name)


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
