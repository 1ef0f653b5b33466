"""Checks of the operator's files: each loads, says nothing in vain, and is one that the worker reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatch.console.findings import Area, Finding
from dispatch.doctor.configuration import Known, not_looked_at
from dispatch.operator_files import overlay_file, pause_windows, scoped_limits, strict_json
from dispatch.operator_files.live import Label, LiveFile
from dispatch.operator_files.overlay_edit import nearest
from dispatch.operator_files.problems import OperatorFileError
from pidispatch_site.conf import Config

AREA = Area("files")
_SEE = "docs/gates.md says what is allowed."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One kind of file with rows: the variable that names it, its usual name, how its rows are read."""

    label: Label
    variable: str
    usual: str
    part: str
    words: str
    keys: Collection[str]
    path_of: Callable[[Config], Path | None]
    scopes_of: Callable[[bytes, str], Sequence[str]]


_KINDS = (
    _Kind(
        label="pause_windows",
        variable="PI_PAUSE_WINDOWS_FILE",
        usual="pause-windows.json",
        part="windows",
        words="pause windows",
        keys=pause_windows.KEYS,
        path_of=lambda config: config.pause_windows_file,
        scopes_of=lambda content, name: [row.scope for row in pause_windows.parse(content, name=name)],
    ),
    _Kind(
        label="scoped_limits",
        variable="PI_SCOPED_LIMITS_FILE",
        usual="scoped-limits.json",
        part="limits",
        words="scoped limits",
        keys=scoped_limits.KEYS,
        path_of=lambda config: config.scoped_limits_file,
        scopes_of=lambda content, name: [row.scope for row in scoped_limits.parse(content, name=name).rows],
    ),
)


def look(known: Known, folder: Path | None) -> Iterator[Finding]:
    """Judge every file; `folder` is the current one, None when it is gone."""
    for kind in _KINDS:
        # An empty value is a problem of the configuration already.
        if kind.variable not in known.wrong:
            yield from _of_kind(kind, known.config, folder)
    yield from _settings(known)


def _of_kind(kind: _Kind, config: Config, folder: Path | None) -> Iterator[Finding]:
    path = kind.path_of(config)
    if path is None:
        yield _unset(kind, folder)
        return
    contents: list[bytes] = []

    def scopes_of(content: bytes) -> Sequence[str]:
        contents.append(content)
        return kind.scopes_of(content, str(path))

    try:
        scopes = LiveFile(path, scopes_of, label=kind.label, count=len).load()
    except OperatorFileError as error:
        yield from (_problem(text) for text in error.problems)
        return
    rows = "1 row" if len(scopes) == 1 else f"{len(scopes)} rows"
    yield AREA.ok(kind.part, f"{path} loads: {rows}")
    for place in strict_json.unknown_keys(contents[-1], part=kind.part, known=kind.keys):
        yield AREA.warning(
            "unknown-key", f"{place} of {path} means nothing", f"A typing error? Correct it. {_SEE}"
        )
    for index, scope in enumerate(scopes):
        if scope.startswith("/") and not _is_real_folder(scope):
            yield AREA.warning(
                "folder-missing",
                f"{kind.part}[{index}] of {path} bounds nothing on this host: its folder is not here, or not"
                " by this path",
                "Write the path that `realpath` shows; leave it where another host has the folder.",
            )


def _unset(kind: _Kind, folder: Path | None) -> Finding:
    found = folder / kind.usual if folder else None
    if found and found.exists():
        return AREA.warning(
            kind.part,
            f"{found} is not read: {kind.variable} is not set",
            f"Set {kind.variable}={found}, or move the file away.",
        )
    return AREA.ok(kind.part, f"no file of {kind.words} is configured ({kind.variable})")


def _is_real_folder(scope: str) -> bool:
    # Jobs name a folder by its real path.
    return os.path.realpath(scope) == scope and Path(scope).is_dir()


def _settings(known: Known) -> Iterator[Finding]:
    if "PI_SETTINGS_FILE" in known.wrong or "PI_STATE_DIR" in known.wrong:
        yield not_looked_at(AREA, "settings", *(known.wrong & {"PI_SETTINGS_FILE", "PI_STATE_DIR"}))
        return
    path = known.config.settings_file
    try:
        overlay = overlay_file.read(path)
    except OperatorFileError as error:
        yield from (_problem(text, "every job of this host is refused meanwhile") for text in error.problems)
        return
    yield AREA.ok("settings", f"the settings file {path} {'loads' if path.exists() else 'is not there'}")
    for key in overlay.unknown:
        meant = nearest(key)
        yield AREA.warning(
            "unknown-key",
            f"{key} of {path} means nothing",
            f"Did you mean {meant}?" if meant else f"Take it out: `manage.py settings --unset {key}`.",
        )


def _problem(text: str, meanwhile: str = "no worker starts with it") -> Finding:
    """Tell a problem of a file, what is allowed behind its semicolon as the fix."""
    found, _, allowed = text.rpartition("; ")
    fix = f"{allowed[:1].upper()}{allowed[1:]}." if found else "Correct the file."
    return AREA.failed("loads", f"{found or text} ({meanwhile})", f"{fix} {_SEE}")
