"""Many ids, some hundred at a time: no step then holds up the server for long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_SIZE = 500


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Answer the items in their order, at most 500 together."""
    return (items[start : start + _SIZE] for start in range(0, len(items), _SIZE))
