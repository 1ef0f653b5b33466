"""Tables whose columns are known only when they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import TypeVar

from django import template

register = template.Library()

_Cell = TypeVar("_Cell")


@register.filter
def under(cells: Sequence[_Cell], headings: Sequence[str]) -> list[tuple[_Cell, str]]:
    """Pair each cell of a row with the heading that it stands under; one beyond the last has none."""
    return list(zip(cells, chain(headings, repeat("")), strict=False))
