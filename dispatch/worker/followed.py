"""The operator's files as a worker loads and follows them, and what of them is said in its log."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from dispatch.operator_files import overlay_file, strict_json
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.overlay import EMPTY, KEYS, Overlay
from dispatch.operator_files.overlay import parse as parse_overlay
from dispatch.operator_files.pause_windows import EVERY_SCOPE, PauseWindow
from dispatch.operator_files.pause_windows import KEYS as WINDOW_KEYS
from dispatch.operator_files.pause_windows import parse as parse_windows
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.scoped_limits import KEYS as LIMIT_KEYS
from dispatch.operator_files.scoped_limits import ScopedLimit, ScopedLimits
from dispatch.operator_files.scoped_limits import parse as parse_limits
from pidispatch_site import log
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFiles:
    """The files of this host's operator; None where the configuration names none."""

    windows: LiveFile[tuple[PauseWindow, ...]] | None = None
    limits: LiveFile[ScopedLimits] | None = None
    overlay: LiveFile[Overlay] | None = None
    read_overlay: Callable[[], Overlay] = lambda: EMPTY


def load_operator_files(config: Config) -> OperatorFiles:
    """Read the files that the configuration names; one ConfigurationError with every problem of them all.

    Settings that do not load are no reason not to start: they are read for each job, which is refused.
    """
    windows = limits = None
    problems: list[str] = []
    if path := config.pause_windows_file:
        windows = LiveFile(
            path,
            _telling(partial(parse_windows, name=str(path)), "windows", WINDOW_KEYS),
            label="pause_windows",
            count=len,
        )
        problems += _problems(windows.load)
    if path := config.scoped_limits_file:
        limits = LiveFile(
            path,
            _telling(partial(parse_limits, name=str(path)), "limits", LIMIT_KEYS),
            label="scoped_limits",
            count=len,
        )
        problems += _problems(limits.load)
    if problems:
        raise ConfigurationError(*problems)
    tell_unreached("windows", windows.current if windows else ())
    tell_unreached("limits", limits.current.rows if limits else ())
    path = config.settings_file
    overlay = LiveFile(
        path,
        partial(parse_overlay, name=str(path)),
        label="settings",
        count=_count_set,
        missing=EMPTY,
    )
    try:
        overlay.load()
    except OperatorFileError as error:
        log.event("settings_reload_invalid", reason=", ".join(error.places))
    tell_unknown(overlay.current)
    return OperatorFiles(
        windows=windows, limits=limits, overlay=overlay, read_overlay=partial(overlay_file.read, path)
    )


def _count_set(overlay: Overlay) -> int:
    return sum(getattr(overlay, key.field) is not None for key in KEYS)


def tell_unknown(overlay: Overlay) -> None:
    """Say which keys of the settings mean nothing."""
    for key in overlay.unknown:
        log.event("settings_overlay_unknown_key", key=key)


def _telling(parse: Callable[[bytes], T], part: str, known: Collection[str]) -> Callable[[bytes], T]:
    """Say of what loads which keys of its rows mean nothing: a limit that is misspelled limits nothing."""

    def parsed(content: bytes) -> T:
        value = parse(content)
        for place in strict_json.unknown_keys(content, part=part, known=known):
            log.event("rule_key_unknown", place=place)
        return value

    return parsed


def tell_unreached(part: str, rows: Sequence[PauseWindow | ScopedLimit]) -> None:
    """Say which rows match no job of this host: jobs name a folder by its real path, a repository in full."""
    for index, row in enumerate(rows):
        if not _is_reachable(row.scope):
            log.event("scope_matches_no_job", place=f"{part}[{index}]")


def _is_reachable(scope: str) -> bool:
    if scope.startswith("/"):
        return os.path.realpath(scope) == scope and Path(scope).is_dir()
    return scope == EVERY_SCOPE or ("/" in scope and "://" not in scope and not scope.startswith("~"))


def _problems(load: Callable[[], object]) -> tuple[str, ...]:
    try:
        load()
    except OperatorFileError as error:
        return error.problems
    return ()
