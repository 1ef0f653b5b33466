"""The settings overlay: values of `settings.json` that come before those of the environment (Q 4.3, 5.5).

A key may hold what nobody else should read, so that messages name the key and never its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatch.jobrules import is_name, is_well_formed
from dispatch.operator_files import strict_json
from dispatch.operator_files.integers import whole_number
from dispatch.operator_files.problems import OperatorFileError, Problem
from pidispatch_site.parsing import LARGEST

MAX_UNKNOWN = 20

_KEY_CHARACTERS = 60
_DECIMAL = re.compile(r"[0-9]{1,16}")
_PROFILE = re.compile(r"[A-Za-z0-9._-]+")
_NAME = "a name without spaces, of at most 200 printable ASCII characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What the file sets; None is a key that it does not have.

    `secret_profiles` maps a profile's name to the script that resolves its secrets. `unknown` are keys of the
    file that mean nothing, the first `MAX_UNKNOWN` of them, cut and escaped: they may be logged.
    """

    provider: str | None = None
    model: str | None = None
    max_turns: int | None = None
    daily_cap: int | None = None
    weekly_cap: int | None = None
    monthly_cap: int | None = None
    max_tokens: int | None = None
    daily_token_cap: int | None = None
    concurrency: int | None = None
    soft_hold_pct: int | None = None
    secret_profiles: Mapping[str, Path] | None = None
    unknown: tuple[str, ...] = ()


EMPTY = Overlay()


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of the file: its name there, its field in `Overlay`, and its values in words.

    `read` makes the value of what JSON holds, None of what is not allowed; `of_text` makes what JSON shall
    hold of a command line's text, and is None where a command line cannot say it.
    """

    name: str
    field: str
    allowed: str
    read: Callable[[object], Any]
    of_text: Callable[[str], object] | None


def parse(content: bytes, *, name: str) -> Overlay:
    """Read the content of the file of this name; OperatorFileError names every key that is wrong."""
    return of_document(strict_json.load(content, name=name), name=name)


def of_document(document: object, *, name: str) -> Overlay:
    """Read what the file's JSON holds, as `parse` does."""
    if not isinstance(document, dict):
        raise OperatorFileError(name, [Problem("", 'is no object; allowed is {"dailyCap": 30} and such')])
    problems = tuple(_problems(document))
    if problems:
        raise OperatorFileError(name, problems)
    values = {key.field: key.read(document[key.name]) for key in KEYS if key.name in document}
    unknown = [_loggable(key) for key in document if key not in BY_NAME]
    return Overlay(**values, unknown=tuple(unknown[:MAX_UNKNOWN]))


def _problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    for key in KEYS:
        if key.name not in document or key.read(document[key.name]) is not None:
            continue
        value = document[key.name]
        if key is SECRET_PROFILES and isinstance(value, dict):
            yield from _profile_problems(value)
        else:
            yield Problem(
                key.name, f"has a value that is not allowed; allowed is {key.allowed}, or no such key"
            )


def _profile_problems(table: Mapping[str, Any]) -> Iterator[Problem]:
    for index, (profile, path) in enumerate(table.items()):
        if not _PROFILE.fullmatch(profile):
            text = "has a name that is not allowed; allowed are letters, digits, dots, dashes and underscores"
            yield Problem(f"{SECRET_PROFILES.name}[{index}]", text)
        elif not _is_absolute(path):
            place = f"{SECRET_PROFILES.name}.{profile[:_KEY_CHARACTERS]}"
            yield Problem(place, "is no absolute path; allowed is the path of a script, from / on")


def _loggable(key: str) -> str:
    """Show a key of somebody else's making on one line of plain characters, and no longer than ours are."""
    text = ascii(key)[1:-1]
    return text if len(text) <= _KEY_CHARACTERS else f"{text[: _KEY_CHARACTERS - 3]}..."


def _is_absolute(path: object) -> bool:
    return isinstance(path, str) and path.startswith("/") and "\0" not in path and is_well_formed(path)


def _read_name(value: object) -> str | None:
    return value if isinstance(value, str) and is_name(value) else None


def _read_profiles(value: object) -> dict[str, Path] | None:
    if not isinstance(value, dict):
        return None
    if not all(_PROFILE.fullmatch(name) and _is_absolute(path) for name, path in value.items()):
        return None
    return {name: Path(path) for name, path in value.items()}


def _decimal(text: str) -> int | None:
    """Read a number of a command line as one of the environment is read; None for anything else."""
    trimmed = text.strip()
    return int(trimmed) if _DECIMAL.fullmatch(trimmed) else None


def _name_key(name: str, field: str) -> Key:
    return Key(name=name, field=field, allowed=_NAME, read=_read_name, of_text=str)


def _number_key(name: str, field: str, *, most: int = LARGEST) -> Key:
    words = "a whole number from 1 " + (f"to {most}" if most != LARGEST else "up")
    return Key(
        name=name,
        field=field,
        allowed=words,
        read=lambda value: whole_number(value, most=most),
        of_text=_decimal,
    )


SECRET_PROFILES = Key(
    name="secretProfiles",
    field="secret_profiles",
    allowed="an object of absolute paths, by names of letters, digits, dots, dashes and underscores",
    read=_read_profiles,
    of_text=None,
)
KEYS: tuple[Key, ...] = (
    _name_key("provider", "provider"),
    _name_key("model", "model"),
    _number_key("maxTurns", "max_turns"),
    _number_key("maxTokens", "max_tokens"),
    _number_key("concurrency", "concurrency", most=10),
    _number_key("dailyCap", "daily_cap"),
    _number_key("weeklyCap", "weekly_cap"),
    _number_key("monthlyCap", "monthly_cap"),
    _number_key("softHoldPct", "soft_hold_pct", most=99),
    _number_key("dailyTokenCap", "daily_token_cap"),
    SECRET_PROFILES,
)
BY_NAME: Mapping[str, Key] = {key.name: key for key in KEYS}
