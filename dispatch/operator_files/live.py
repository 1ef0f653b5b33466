"""An operator's file that is followed while the worker lives; its last good version is kept.

Nothing is watched (ADR 9): the file is opened by its name at every look, so that it does not matter how an
edit came about. What two looks in a row found alike counts; what is being written does not.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

from dispatch.operator_files.content import NoRegularFileError, opened, read_from
from dispatch.operator_files.problems import OperatorFileError, Problem
from dispatch.operator_files.strict_json import MAX_BYTES
from pidispatch_site import log

# An inode that has looked the same for so long is not read again. Until then it is: within one tick of its
# file system's clock (two seconds at the coarsest) a second edit of the same size shows nowhere else.
_SETTLED_SECONDS = 2.0

_SHOWN_PLACES = 10
_MISSING = "missing"

T = TypeVar("T")
Label = Literal["pause_windows", "scoped_limits", "settings", "triggers"]


@dataclass(frozen=True, slots=True)
class _Events:
    """The lines of one kind of file; no `reloaded` where whoever acts on a change tells what came of it."""

    watching: Callable[[str], None]
    reloaded: Callable[[int], None] | None
    invalid: Callable[[str], None]


_EVENTS: Mapping[Label, _Events] = {
    "pause_windows": _Events(
        lambda path: log.event("pause_windows_watching", path=path),
        lambda count: log.event("pause_windows_reloaded", count=count),
        lambda reason: log.event("pause_windows_reload_invalid", reason=reason),
    ),
    "scoped_limits": _Events(
        lambda path: log.event("scoped_limits_watching", path=path),
        lambda count: log.event("scoped_limits_reloaded", count=count),
        lambda reason: log.event("scoped_limits_reload_invalid", reason=reason),
    ),
    "settings": _Events(
        lambda path: log.event("settings_watching", path=path),
        lambda count: log.event("settings_reloaded", count=count),
        lambda reason: log.event("settings_reload_invalid", reason=reason),
    ),
    "triggers": _Events(
        lambda path: log.event("triggers_watching", path=path),
        None,
        lambda reason: log.event("schedules_reload_invalid", reason=reason, kept=True),
    ),
}


@dataclass(frozen=True, slots=True)
class _Unread:
    """Why there is no content: a token for the log, and words for the person."""

    token: str
    text: str = field(compare=False)


_Look = bytes | _Unread

_NO_FILE = _Unread("not-a-file", "is no regular file; name a file")
_TOO_LARGE = _Unread("too-large", f"is too large; allowed are {MAX_BYTES} bytes")


class LiveFile(Generic[T]):
    """The value of one file, as of its last good version.

    `parse` makes the value of the content and raises OperatorFileError; `count` is what `…_reloaded` tells.
    `missing` is the value while there is no file, None when there must be one. One thread loads and polls;
    any may read `current`.
    """

    def __init__(
        self,
        path: Path,
        parse: Callable[[bytes], T],
        *,
        label: Label,
        count: Callable[[T], int],
        missing: T | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._parse = parse
        self._count = count
        self._missing = missing
        self._current = missing
        self._digest = ""
        self._version = 0
        self._is_current = False
        self._events = _EVENTS[label]
        self._content = _Content(path, clock)
        self._seen: _Look | None = None
        self._judged: _Look | None = None
        self._is_followed = False

    @property
    def current(self) -> T:
        """The value of the last good version, else `missing`; LookupError when there is neither."""
        if self._current is None:
            raise LookupError("not loaded")
        return self._current

    @property
    def digest(self) -> str:
        """Sixteen hex digits of what `current` was made of, the same on hosts that took over the same."""
        return self._digest

    @property
    def version(self) -> int:
        """How many good versions were taken over, those included that are like the one before."""
        return self._version

    @property
    def is_current(self) -> bool:
        """Whether the file says now what `current` is; False while what stands there cannot be taken."""
        return self._is_current

    def load(self) -> T:
        """Read the file at boot; OperatorFileError, with every problem, for what cannot be taken."""
        self._judged = self._content.look()
        value = self._value(self._judged)
        self._accept(value, self._judged)
        return value

    def poll(self) -> bool:
        """Look once, and take over what is good and settled; True when `current` is another value now.

        Says once what was taken over and what was not. What an operator does to a file raises nothing.
        """
        if not self._is_followed:
            self._is_followed = True
            self._events.watching(str(self._path))
        before, self._seen = self._seen, self._content.look()
        if self._seen != before or self._seen == self._judged:
            return False
        self._judged = self._seen
        return self._take_over(self._judged)

    def _take_over(self, look: _Look) -> bool:
        try:
            value = self._value(look)
        except OperatorFileError as error:
            self._is_current = False
            self._events.invalid(look.token if isinstance(look, _Unread) else places_of(error))
            return False
        before = self._current
        self._accept(value, look)
        if self._events.reloaded:
            self._events.reloaded(self._count(value))
        return value != before

    def _accept(self, value: T, look: _Look) -> None:
        self._current, self._digest, self._is_current = value, _digest(look), True
        # Last: who sees another version finds its value.
        self._version += 1

    def _value(self, look: _Look) -> T:
        if not isinstance(look, _Unread):
            return self._parse(look)
        if look.token == _MISSING and self._missing is not None:
            return self._missing
        raise OperatorFileError(str(self._path), [Problem("", look.text)])


class _Content:
    """What stands in a file now; one that has not changed for long is opened but not read."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._stamp: tuple[int, ...] = ()
        self._since = 0.0
        self._read: _Look = b""

    def look(self) -> _Look:
        """Answer the content or why there is none; never blocks on a pipe, never raises an OSError."""
        try:
            # Opened even when it will not be read: only that makes a network file system ask its server.
            with opened(self._path) as (descriptor, found):
                return self._of(descriptor, found)
        except OSError as error:
            self._stamp = ()
            return _unread(error)

    def _of(self, descriptor: int, found: os.stat_result) -> _Look:
        # Before the content: what is written while we read makes the next look read again.
        stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)
        if stamp != self._stamp:
            self._stamp, self._since = stamp, self._clock()
        elif self._clock() - self._since > _SETTLED_SECONDS:
            return self._read
        content = read_from(descriptor)
        self._read = _TOO_LARGE if len(content) > MAX_BYTES else content
        return self._read


def _unread(error: OSError) -> _Unread:
    if isinstance(error, FileNotFoundError):
        return _Unread(_MISSING, "does not exist; create it, or take its name out of the settings")
    if isinstance(error, NoRegularFileError):
        return _NO_FILE
    said = error.strerror or type(error).__name__
    return _Unread("unreadable", f"cannot be read ({said}); the worker's user must be able to read it")


def _digest(look: _Look) -> str:
    return "" if isinstance(look, _Unread) else hashlib.sha256(look).hexdigest()[:16]


def places_of(error: OperatorFileError) -> str:
    """Name where the problems are, as a log line may: no value, and no more than a line's worth."""
    places = list(dict.fromkeys(error.places))
    more = len(places) - _SHOWN_PLACES
    return ", ".join(places[:_SHOWN_PLACES]) + (f" and {more} more" if more > 0 else "")
