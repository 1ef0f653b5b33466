"""The triggers file rewritten as a whole by one of its two authors: a person's command, the disarm (Q 5.1).

They keep each other out by the lock. An editor knows nothing of that: what stands in the file is compared
with what was read right before the rename, and a change made meanwhile is taken as the new start.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dispatch.operator_files import strict_json
from dispatch.operator_files.content import opened, read_from
from dispatch.operator_files.overlay_edit import rendered
from dispatch.operator_files.problems import OperatorFileError, Problem
from dispatch.operator_files.replacing import replace, unwritable
from dispatch.queue.delays import Delays, no_delay
from dispatch.triggers.editing import EMPTY
from dispatch.triggers.entries import Triggers
from dispatch.triggers.lock import Lock, LockedError, held
from dispatch.triggers.parse import parse
from pidispatch_site.errors import OperationalError

_ROUNDS = 3
_SEQUENCE = itertools.count(1)

Change = Callable[[Any], Any | None]
Judge = Callable[[Triggers], None]


class EditedMeanwhileError(OperationalError):
    """Somebody without the lock changed the file again and again while it was being rewritten."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often the lock is asked for, and how to pause in between."""

    tries: int
    pause: Callable[[], None]


AT_ONCE = Patience(tries=1, pause=lambda: None)


@dataclass(frozen=True, slots=True)
class Written:
    """What the file held and holds now; `before` is None where there was none."""

    before: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True)
class _Task:
    """What was asked of `rewrite`."""

    change: Change
    judge: Judge
    create_missing: bool


@dataclass(frozen=True, slots=True)
class _Look:
    """What stands in the file, and which file it is; of none all is None."""

    content: bytes | None
    inode: tuple[int, int, int] | None


def rewrite(
    path: Path,
    change: Change,
    *,
    patience: Patience = AT_ONCE,
    judge: Judge = lambda _: None,
    create_missing: bool = False,
    reached: Delays = no_delay,
) -> Written:
    """Apply `change` to the file's JSON and write the result, if the loader takes it.

    `change` gets the document and answers a new one, or None where nothing is to be done; what it raises
    comes through. It may be asked again, with what an editor wrote meanwhile. The file keeps mode and owner,
    and a symbolic link goes on pointing at it. `judge` may refuse what the loader takes, by an
    OperatorFileError. `create_missing` begins with an empty list where no file is.

    OperatorFileError for a file that is missing or no strict JSON, and for a result that does not load;
    LockedError and EditedMeanwhileError where others were faster, OperationalError for what the file system
    refuses. Nothing was changed then.
    """
    target, task = Path(os.path.realpath(path)), _Task(change, judge, create_missing)
    for left in reversed(range(patience.tries)):
        try:
            with held(target) as lock:
                reached("triggers locked")
                return _rewrite(path, lock, task, reached)
        except (LockedError, EditedMeanwhileError, OperatorFileError):
            # What does not load now may be half of what an editor is writing.
            if not left:
                raise
            patience.pause()
        except OSError as error:
            raise unwritable(path, error) from error
    raise ValueError("a lock is asked for at least once")


def preview(
    path: Path, change: Change, *, judge: Judge = lambda _: None, create_missing: bool = False
) -> Written:
    """Tell what `rewrite` would do now; writes nothing and needs no lock. Raises the same."""
    try:
        return _changed(path, _look(path), _Task(change, judge, create_missing))
    except OSError as error:
        raise unwritable(path, error) from error


def document_of(path: Path) -> Any:
    """Read the file's JSON; OperatorFileError for a file that is missing, unreadable or no strict JSON."""
    try:
        return _document(path, _look(path), create_missing=False)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OperatorFileError(str(path), [Problem("", f"cannot be read: {reason}")]) from error


def _rewrite(path: Path, lock: Lock, task: _Task, reached: Delays) -> Written:
    target = lock.target
    _remove_leftovers(target)
    for _ in range(_ROUNDS):
        seen = _look(path)
        written = _changed(path, seen, task)
        if written.after == written.before:
            return written
        reached("triggers read")
        temporary = target.with_name(f"{target.name}.{os.getpid()}.{next(_SEQUENCE)}.tmp")
        is_same = partial(_require, path, lock, seen, reached)
        with suppress(_AnotherContent):
            replace(target, written.after, temporary=temporary, before_rename=is_same)
            reached("triggers replaced")
            return written
    raise EditedMeanwhileError(
        f"{path} was changed by somebody else again and again. Nothing was changed by this; try again."
    )


class _AnotherContent(Exception):  # noqa: N818 - no error: it is read again
    """The file is not what was read any more."""


def _require(path: Path, lock: Lock, seen: _Look, reached: Delays) -> None:
    reached("triggers written")
    is_there = Path(os.path.realpath(path)) == lock.target
    if not (is_there and lock.is_held and _look(path) == seen):
        raise _AnotherContent


def _changed(path: Path, seen: _Look, task: _Task) -> Written:
    document = _document(path, seen, create_missing=task.create_missing)
    after = task.change(document)
    if after is None:
        return Written(before=seen.content, after=seen.content or b"")
    content = rendered(after, name=str(path))
    task.judge(parse(content, name=str(path)))
    return Written(before=seen.content, after=content)


def _document(path: Path, seen: _Look, *, create_missing: bool) -> Any:
    if seen.content is not None:
        return strict_json.load(seen.content, name=str(path))
    if create_missing:
        return EMPTY
    raise OperatorFileError(str(path), [Problem("", "does not exist")])


def _look(path: Path) -> _Look:
    try:
        with opened(path) as (descriptor, found):
            inode = (found.st_dev, found.st_ino, found.st_mtime_ns)
            return _Look(content=read_from(descriptor), inode=inode)
    except FileNotFoundError:
        return _Look(content=None, inode=None)


def _remove_leftovers(target: Path) -> None:
    """Remove what writers left that were killed: who has the lock is the only one who writes.

    What cannot be removed, since it is another user's or a folder, is in nobody's way.
    """
    name = re.compile(rf"{re.escape(target.name)}\.\d+\.\d+\.tmp")
    with suppress(OSError):
        for left in target.parent.iterdir():
            if name.fullmatch(left.name):
                with suppress(OSError):
                    left.unlink()
