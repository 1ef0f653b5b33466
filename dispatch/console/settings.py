"""What the settings of this host are and where each comes from, for a person and for a program (Q 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dispatch.operator_files.overlay import KEYS, SECRET_PROFILES, Key, Overlay
from dispatch.operator_files.problems import shown
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.variables import VARIABLES

#: When a change of the file counts, and where.
TAKEN_OVER = (
    "Running workers of this host take it at the next start of a job; concurrency and raised caps within a"
    " second."
)
ALONE = "The file is this host's alone: change it on the other hosts of the fleet too."
_VARIABLES = {row.field: row for row in VARIABLES if row.field is not None}


class Source(StrEnum):
    """Where a value comes from; the first that has it wins."""

    OVERLAY = "overlay"
    ENVIRONMENT = "environment"
    DEFAULT = "default"

    @property
    def words(self) -> str:
        """Name it as a person knows it; the value is for programs."""
        return "settings file" if self is Source.OVERLAY else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key with its value in force (None: off); of the profiles of secrets only the names.

    `allowed` are words for a person; `variable` is the one of the environment, where there is one, and
    `meaning` says what it does and in which unit.
    """

    name: str
    value: int | str | tuple[str, ...] | None
    source: Source
    allowed: str
    variable: str | None
    meaning: str = ""

    def __str__(self) -> str:
        """Write the value as a person reads it."""
        if isinstance(self.value, tuple):
            return ", ".join(self.value) or "none"
        if isinstance(self.value, int):
            return f"{self.value:,}"
        return "off" if self.value is None else self.value


def in_force(
    overlay: Overlay, configured: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[Setting, ...]:
    """List every key; `configured` are the configuration's values, by the names of `Overlay`'s fields."""
    return tuple(_setting(key, overlay, configured, environment) for key in KEYS)


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Read `KEY=VALUE` words; ConfigurationError with every word that is none and every key named twice."""
    found: dict[str, str] = {}
    problems = []
    for word in words:
        key, sign, value = word.partition("=")
        if not (key and sign):
            problems.append(f"--set {shown(key)} is incomplete; write --set KEY=VALUE, or --unset KEY")
        elif key in found:
            problems.append(f"--set names {shown(key)} twice; name it once")
        found[key] = value
    if problems:
        raise ConfigurationError(*problems)
    return found


def as_json(settings: Sequence[Setting], overlay: Overlay, *, file: str) -> dict[str, Any]:
    """Make what `--json` prints: the file, and for each key value, source, allowed values and variable."""
    rows = {
        one.name: {
            "value": one.value,
            "from": one.source.value,
            "allowed": one.allowed,
            "variable": one.variable,
        }
        for one in settings
    }
    return {"file": file, "settings": rows, "unknown": overlay.unknown}


def table(settings: Sequence[Setting]) -> str:
    """Write the settings as aligned columns."""
    rows = [("setting", "in force", "from", "allowed")]
    rows += [(one.name, str(one), one.source.words, _advice(one)) for one in settings]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


def _setting(
    key: Key, overlay: Overlay, configured: Mapping[str, Any], environment: Mapping[str, str]
) -> Setting:
    value, source = getattr(overlay, key.field), Source.OVERLAY
    row = _VARIABLES.get(key.field)
    if value is None:
        value = configured.get(key.field)
        source = Source.ENVIRONMENT if row and environment.get(row.name) else Source.DEFAULT
    if key is SECRET_PROFILES:
        value = tuple(value or ())
    return Setting(
        name=key.name,
        value=value,
        source=source,
        allowed=key.allowed,
        variable=row.name if row else None,
        meaning=row.meaning if row else "",
    )


def _advice(setting: Setting) -> str:
    by_hand = setting.name == SECRET_PROFILES.name
    return f"edited by hand in the file: {setting.allowed}" if by_hand else setting.allowed
