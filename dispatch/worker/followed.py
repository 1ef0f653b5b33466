"""The operator's files as a worker loads and follows them, and what of them is said in its log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from dispatch.operator_files import overlay_file, strict_json
from dispatch.operator_files.live import Label, LiveFile
from dispatch.operator_files.overlay import EMPTY, KEYS, Overlay
from dispatch.operator_files.overlay import parse as parse_overlay
from dispatch.operator_files.pause_windows import KEYS as WINDOW_KEYS
from dispatch.operator_files.pause_windows import PauseWindow
from dispatch.operator_files.pause_windows import parse as parse_windows
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.scoped_limits import KEYS as LIMIT_KEYS
from dispatch.operator_files.scoped_limits import ScopedLimit, ScopedLimits
from dispatch.operator_files.scoped_limits import parse as parse_limits
from dispatch.operator_files.scopes import is_reachable
from dispatch.schedules import placement
from dispatch.triggers.entries import Triggers
from dispatch.triggers.parse import parse as parse_triggers
from dispatch.triggers.unknown import unknown_keys as trigger_keys
from hosts.zone import zone_name
from pidispatch_site import log
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError

T = TypeVar("T")
Rows = TypeVar("Rows", bound=Sized, covariant=True)
_Unknown = Callable[[bytes], Iterable[str]]
_WINDOW_KEYS: _Unknown = partial(strict_json.unknown_keys, part="windows", known=WINDOW_KEYS)
_LIMIT_KEYS: _Unknown = partial(strict_json.unknown_keys, part="limits", known=LIMIT_KEYS)


class _Parse(Protocol[Rows]):
    """Makes the value of a file's content; OperatorFileError, by the file's name."""

    def __call__(self, content: bytes, *, name: str) -> Rows: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFiles:
    """The files of this host's operator; None where the configuration names none."""

    windows: LiveFile[tuple[PauseWindow, ...]] | None = None
    limits: LiveFile[ScopedLimits] | None = None
    triggers: LiveFile[Triggers] | None = None
    overlay: LiveFile[Overlay] | None = None
    read_overlay: Callable[[], Overlay] = lambda: EMPTY


def load_operator_files(config: Config) -> OperatorFiles:
    """Read the files that the configuration names; one ConfigurationError with every problem of them all.

    Settings that do not load are no reason not to start: they are read for each job, which is refused.
    """
    loading = _Loading()
    windows = loading.file("pause_windows", config.pause_windows_file, parse_windows, _WINDOW_KEYS)
    limits = loading.file("scoped_limits", config.scoped_limits_file, parse_limits, _LIMIT_KEYS)
    triggers = loading.file("triggers", config.triggers_file, parse_triggers, trigger_keys)
    if triggers:
        loading.try_out(partial(_place, triggers.current, config))
    loading.finish()
    tell_unreached("windows", windows.current if windows else ())
    tell_unreached("limits", limits.current.rows if limits else ())
    return OperatorFiles(
        windows=windows,
        limits=limits,
        triggers=triggers,
        overlay=_overlay(config.settings_file),
        read_overlay=partial(overlay_file.read, config.settings_file),
    )


class _Loading:
    """Loads one file after another, and keeps what is wrong with them until all were looked at."""

    def __init__(self) -> None:
        self._problems: list[str] = []

    def file(
        self, label: Label, path: Path | None, parse: _Parse[Rows], unknown: _Unknown
    ) -> LiveFile[Rows] | None:
        """Load the file at `path`, whose value `parse` makes; None without one, or when it does not load."""
        if path is None:
            return None
        file = LiveFile(path, _telling(partial(parse, name=str(path)), unknown), label=label, count=len)
        return file if self.try_out(file.load) else None

    def try_out(self, step: Callable[[], object]) -> bool:
        """Do it; whether nothing was wrong."""
        try:
            step()
        except OperatorFileError as error:
            self._problems += error.problems
            return False
        return True

    def finish(self) -> None:
        """Raise the ConfigurationError, if anything was wrong."""
        if self._problems:
            raise ConfigurationError(*self._problems)


def _place(triggers: Triggers, config: Config) -> None:
    """See that a single host has what its schedules need; in a fleet others may have it."""
    zone, name = zone_name(config.environment), str(config.triggers_file)
    placement.place(triggers, fleet_mode=config.worker_name_declared, host_zone=zone, name=name)


def _overlay(path: Path) -> LiveFile[Overlay]:
    file = LiveFile(
        path, partial(parse_overlay, name=str(path)), label="settings", count=_count_set, missing=EMPTY
    )
    try:
        file.load()
    except OperatorFileError as error:
        log.event("settings_reload_invalid", reason=", ".join(error.places))
    tell_unknown(file.current)
    return file


def _count_set(overlay: Overlay) -> int:
    return sum(getattr(overlay, key.field) is not None for key in KEYS)


def tell_unknown(overlay: Overlay) -> None:
    """Say which keys of the settings mean nothing."""
    for key in overlay.unknown:
        log.event("settings_overlay_unknown_key", key=key)


def _telling(parse: Callable[[bytes], T], unknown: _Unknown) -> Callable[[bytes], T]:
    """Say of what loads which of its keys mean nothing: a limit that is misspelled limits nothing."""

    def parsed(content: bytes) -> T:
        value = parse(content)
        for place in unknown(content):
            log.event("rule_key_unknown", place=place)
        return value

    return parsed


def tell_unreached(part: str, rows: Sequence[PauseWindow | ScopedLimit]) -> None:
    """Say which rows match no job of this host: jobs name a folder by its real path, a repository in full."""
    for index, row in enumerate(rows):
        if not is_reachable(row.scope):
            log.event("scope_matches_no_job", place=f"{part}[{index}]")
