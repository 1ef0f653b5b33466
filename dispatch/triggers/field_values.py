"""Readers of single values of an entry: each answers the value, or None for what is not allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dispatch.jobrules import is_well_formed
from dispatch.operator_files.integers import whole_number
from pidispatch_site.parsing import LARGEST
from runs.workspace.scope import BLANKS


def text(rule: Callable[[str], bool] = lambda _: True) -> Callable[[Any], str | None]:
    """Make a reader of texts that are more than blanks and keep the rule.

    Half a character and NUL stand in no path, no argument and no UTF-8.
    """

    def read(value: Any) -> str | None:
        if not isinstance(value, str) or not value.strip(BLANKS):
            return None
        return value if not is_broken(value) and rule(value) else None

    return read


def is_broken(value: Any) -> bool:
    """Tell whether it is a text with half a character or NUL in it."""
    return isinstance(value, str) and ("\0" in value or not is_well_formed(value))


def flag(value: Any) -> bool | None:
    """Read true or false; nothing that only counts as such."""
    return value if isinstance(value, bool) else None


def number(*, least: int, most: int = LARGEST) -> Callable[[Any], int | None]:
    """Make a reader of whole numbers."""
    return lambda value: whole_number(value, least=least, most=most)


def is_trimmed(value: str) -> bool:
    """Tell whether no blanks stand around it."""
    return value == value.strip(BLANKS)
