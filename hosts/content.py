"""What a host may say of itself in the registry: short texts that are no paths (Q 7.1)."""

from __future__ import annotations

import re

# Longer than anything that a host has to say; a reader takes no longer value for one of ours.
LONGEST_VALUE = 4096
PATH_SHAPED = "path-shaped"
TOO_LONG = "too-long"
_PATH = re.compile(r"/|[A-Za-z]:/|[^\\]*\\")


def text_of(value: object) -> str:
    """Write a fact as it is stored: nothing as a blank, a flag as `true` or `false`."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def refusal(text: str) -> str | None:
    """Say why a text must not be stored, as a token; None when it may be.

    Everybody who reaches Valkey reads the registry, and a path tells who works there and on what.
    """
    if _PATH.match(text):
        return PATH_SHAPED
    return TOO_LONG if len(text.encode("utf-8", "replace")) > LONGEST_VALUE else None
