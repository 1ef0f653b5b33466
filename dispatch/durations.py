"""Durations as a person types them: `90m`, `2h`, `3d` (contracts 9)."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_WRITTEN = re.compile(r"([1-9][0-9]{0,5})([smhd])")
#: More than anybody types, so that what is wrong can be told in whole.
LONGEST_TEXT = 80
EXPECTED = "a whole number with s, m, h or d behind it, such as 90m, 2h or 3d"


def parse(text: str) -> timedelta:
    """Read a positive duration; ValueError, saying what is allowed, for anything else."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:LONGEST_TEXT]!r} is no duration; expected {EXPECTED}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
