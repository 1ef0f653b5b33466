"""Changes of a triggers file's raw JSON (Q 5.1): what nobody asked to change stays as it was written.

Each answers a new document and leaves the given one as it is. Whether the result is a triggers file is judged
by the loader; here is refused, as ConfigurationError, only what names no entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatch.triggers.entry_places import entries_in, find
from dispatch.triggers.parse import PART

EMPTY: Mapping[str, Any] = {PART: []}


def add(document: Any, entry: object) -> Any:
    """Put an entry behind the others: their places stay."""
    return _with(document, [*entries_in(document), entry])


def edit(document: Any, place: str, entry: object) -> Any:
    """Put an entry in the place of another."""
    entries, index = entries_in(document), find(document, place)
    return _with(document, [*entries[:index], entry, *entries[index + 1 :]])


def remove(document: Any, place: str) -> Any:
    """Take an entry out: those behind it move up."""
    entries, index = entries_in(document), find(document, place)
    return _with(document, [*entries[:index], *entries[index + 1 :]])


def _with(document: Any, entries: list[Any]) -> Any:
    return {**document, PART: entries}
