"""An operator's file rewritten as a whole by a command or a page: judged by its parser before it is written.

Commands and pages keep each other out by the lock. An editor knows nothing of that: what stands in the file
is compared with what was read right before the rename, and what came meanwhile is taken as the new start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dispatch.operator_files import strict_json
from dispatch.operator_files.content import opened, read_from
from dispatch.operator_files.edit_lock import SECONDS, locked
from dispatch.operator_files.overlay_edit import rendered
from dispatch.operator_files.problems import OperatorFileError, Problem
from dispatch.operator_files.replacing import replace, unwritable
from pidispatch_site.errors import OperationalError

_ROUNDS = 3

#: Makes a new document of what the file's JSON holds; None: nothing is to be done.
Change = Callable[[Any], Any | None]


class Parse(Protocol):
    """Judges a file's content."""

    def __call__(self, content: bytes, *, name: str) -> object:
        """Raise OperatorFileError, by the file's name, for what is not allowed."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the file held and holds now; None: there was, or is, none."""

    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class _Look:
    """What stands in the file, and which file it is; of none both are None."""

    content: bytes | None = None
    inode: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """How a kind of file is rewritten: `parse` judges the result, `empty` is what a missing file holds."""

    parse: Parse
    empty: Mapping[str, Any]

    def content(self, path: Path) -> bytes | None:
        """Read the file, None where there is none; OperatorFileError for one that is unreadable."""
        return _look(path).content

    def document(self, path: Path) -> Any:
        """Read the file's JSON; OperatorFileError for a file that is unreadable or no strict JSON."""
        return self._document(_look(path), path)

    def preview(self, path: Path, change: Change) -> Written:
        """Tell what `rewrite` would do now; writes nothing and needs no lock. Raises the same."""
        return self._changed(_look(path), path, change)

    def rewrite(
        self,
        path: Path,
        change: Change,
        *,
        lock_seconds: float = SECONDS,
        before_rename: Callable[[], None] = lambda: None,
    ) -> Written:
        """Apply `change` to the file's JSON, if the parser takes the result.

        It may be asked again, with what an editor wrote meanwhile; what it raises comes through. The file
        changes at one instant and keeps mode and owner; a symbolic link goes on pointing at it. A file that
        is not there is made, its owner's alone. OperatorFileError for a file that is no strict JSON and for a
        result that does not load, OperationalError for what the file system refuses and where others are
        faster. Nothing was changed then.
        """
        target = Path(os.path.realpath(path))
        try:
            with locked(target, lock_seconds):
                return self._rewrite(path, target, change, before_rename)
        except OSError as error:
            raise unwritable(path, error) from error

    def _rewrite(
        self, path: Path, target: Path, change: Change, before_rename: Callable[[], None]
    ) -> Written:
        # Ours alone while we hold the lock, so what is there was left by one who was killed.
        temporary = target.with_name(f".{target.name}.tmp")
        for _ in range(_ROUNDS):
            seen = _look(path)
            written = self._changed(seen, path, change)
            if written.after is None or written.after == written.before:
                return written

            def require(seen: _Look = seen) -> None:
                before_rename()
                if Path(os.path.realpath(path)) != target or _look(path) != seen:
                    raise _AnotherContent

            temporary.unlink(missing_ok=True)
            with suppress(_AnotherContent):
                replace(target, written.after, temporary=temporary, before_rename=require)
                return written
        raise OperationalError(
            f"{path} was changed by somebody else again and again. Nothing was changed by this; try again."
        )

    def _changed(self, seen: _Look, path: Path, change: Change) -> Written:
        after, name = change(self._document(seen, path)), str(path)
        if after is None:
            return Written(before=seen.content, after=seen.content)
        content = rendered(after, name=name)
        self.parse(content, name=name)
        is_nothing = seen.content is None and content == rendered(self.empty, name=name)
        return Written(before=seen.content, after=None if is_nothing else content)

    def _document(self, seen: _Look, path: Path) -> Any:
        return self.empty if seen.content is None else strict_json.load(seen.content, name=str(path))


class _AnotherContent(Exception):  # noqa: N818 - no error: it is read again
    """The file is not what was read any more."""


def _look(path: Path) -> _Look:
    try:
        with opened(path) as (descriptor, found):
            inode = (found.st_dev, found.st_ino, found.st_mtime_ns)
            return _Look(read_from(descriptor), inode)
    except FileNotFoundError:
        return _Look()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OperatorFileError(str(path), [Problem("", f"cannot be read: {reason}")]) from error
