"""What a text from the environment may be, and the value it stands for (Q 4.1).

A parser takes the text of a variable that is set and not empty and returns its value, or raises `Unusable`
with what was expected. Nothing here knows a variable by name or asks the machine, `directory` excepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)

# The reference's numbers are exact up to here; beyond it nothing we count or wait for makes sense.
LARGEST = 2**53 - 1
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_TOKEN = re.compile(r"[!-~]{1,200}")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
_PROFILE = re.compile(r"[A-Za-z0-9._-]+")
_PROFILES = "entries NAME:/absolute/path of letters, digits, . _ - for a name, separated by commas"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Unusable(ValueError):  # noqa: N818 - a verdict on a text, not a fault
    """The text is not a value of its kind; the message continues the word "expected"."""


def integer(*, least: int, most: int = LARGEST, floor: int | None = None) -> Callable[[str], int]:
    """Make a parser of whole decimal numbers from `least` to `most`; below `floor` they are raised to it."""
    expected = f"a whole number of at least {least}" + (f" and at most {most}" if most != LARGEST else "")

    def parse(text: str) -> int:
        trimmed = text.strip()
        if not _INTEGER.fullmatch(trimmed) or not least <= int(trimmed) <= most:
            raise Unusable(expected)
        return max(int(trimmed), floor or 0) if floor is not None else int(trimmed)

    return parse


def choice(kind: type[E]) -> Callable[[str], E]:
    """Make a parser of the exact values of `kind`."""

    def parse(text: str) -> E:
        try:
            return kind(text)
        except ValueError as exc:
            raise Unusable(" or ".join(item.value for item in kind)) from exc

    return parse


def zero_or_one(text: str) -> bool:
    """Read exactly `1` as true and exactly `0` as false; a typo must not mean either."""
    if text not in ("0", "1"):
        raise Unusable("0, 1 or nothing")
    return text == "1"


def only_one_is_on(text: str) -> bool:
    """Read exactly `1` as true, whatever else as false."""
    return text == "1"


def only_zero_is_off(text: str) -> bool:
    """Read exactly `0` as false, whatever else as true."""
    return text != "0"


def token(text: str) -> str:
    """Read a name without spaces or control characters, at most 200 characters: a provider, a model."""
    if not _TOKEN.fullmatch(text):
        raise Unusable("a name without spaces, of at most 200 printable ASCII characters")
    return text


def image(text: str) -> str:
    """Read a reference of a container image."""
    if not _IMAGE.fullmatch(text):
        raise Unusable("an image reference such as pi-job:latest")
    return text


def names(text: str) -> tuple[str, ...]:
    """Read a list of variable names split on commas; blank entries are skipped, repeats are named once."""
    found = tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
    wrong = [item for item in found if not _VARIABLE.fullmatch(item)]
    if wrong:
        raise Unusable(f"names of variables, separated by commas; not a name: {', '.join(map(repr, wrong))}")
    return found


def profiles(text: str) -> Mapping[str, Path]:
    """Read a table of scripts, `name:/absolute/path` entries split on commas (Q 4.1).

    Each is split at its first colon, blank ones are skipped. Any name of the alphabet is a plain key.
    """
    table: dict[str, Path] = {}
    for entry in filter(None, (item.strip() for item in text.split(","))):
        name, colon, where = (part.strip() for part in entry.partition(":"))
        if not colon or not _PROFILE.fullmatch(name) or not where.startswith("/"):
            raise Unusable(f"{_PROFILES}; {entry!r} is no such entry")
        if name in table:
            raise Unusable(f"{_PROFILES}; the name {name!r} stands there twice")
        table[name] = Path(where)
    return table


def path(text: str) -> Path:
    """Read a path; a relative one is taken from the current folder."""
    if text.startswith("~"):
        # Nothing expands a value, so this would make a folder that is named "~".
        raise Unusable("a path written in full: nothing expands the ~ at its start")
    try:
        return Path(text).absolute()
    except FileNotFoundError as exc:
        raise Unusable("a path that starts with /, since the current folder is gone") from exc


def absolute_path(text: str) -> Path:
    """Read a path that means the same from every folder."""
    if not Path(text).is_absolute():
        raise Unusable("a path that starts with /")
    return path(text)


def directory(text: str) -> Path:
    """Read a path at which a directory stands now."""
    found = path(text)
    if not found.is_dir():
        raise Unusable("an existing directory")
    return found


def origins(text: str) -> tuple[str, ...]:
    """Read a list of web origins (`scheme://host[:port]`, nothing after it) split on commas."""
    found = tuple(dict.fromkeys(item.strip().rstrip("/") for item in text.split(",") if item.strip()))
    if not all(re.fullmatch(r"https?://[A-Za-z0-9.\[\]:-]+", item) for item in found):
        raise Unusable(
            "addresses such as https://pi.example.org, separated by commas, with nothing after the host"
        )
    return found
