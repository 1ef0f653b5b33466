"""Whole numbers as JSON may write them: 5, 5.0 and 1e2 are one kind there, true and false are none."""

from __future__ import annotations

from pidispatch_site.parsing import LARGEST


def whole_number(value: object, *, least: int = 1, most: int = LARGEST) -> int | None:
    """Read a value out of JSON as a whole number from `least` to `most`; None when it is none.

    Beyond 2**53 - 1 a float no longer tells neighbours apart, so nothing larger is ever meant.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if least <= value <= most else None
