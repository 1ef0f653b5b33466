"""The name of a host: what an operator may declare, and what is made of a hostname (Q 4.2).

The rules stand here because the configuration needs them; everybody else takes them from `hosts.names`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LONGEST = 64
FALLBACK = "worker"
# Names become parts of keys and of file names such as `<name>.json`, hence alphabet and reserved tails.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED_TAIL = re.compile(r"\.(json|log)\Z", re.IGNORECASE)


def in_alphabet(name: object) -> bool:
    """Tell whether it is a text that can stand in a queue's name (reserved tails included)."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def declared(name: str) -> str | None:
    """Say what a typed name should have been, as the continuation of "expected"; None if it is right."""
    if not in_alphabet(name):
        return f"1 to {LONGEST} characters of A-Z a-z 0-9 . _ -, the first one a letter or a digit"
    if _RESERVED_TAIL.search(name):
        return "a name that does not end in .json or .log"
    return None


def defaulted(hostname: Callable[[], str | None]) -> str:
    """Make a name of this machine's hostname: repaired silently, `worker` when nothing usable is left."""
    try:
        name = (hostname() or "").lower()
    except (OSError, UnicodeError):
        return FALLBACK
    name = _trimmed(re.sub(r"-+", "-", re.sub(r"[^a-z0-9._-]", "-", name)))
    name = _trimmed(name[:LONGEST])
    # The dot is replaced, never the text lengthened: the name is already as long as it may be.
    name = _RESERVED_TAIL.sub(r"-\1", name)
    return name if in_alphabet(name) else FALLBACK


def _trimmed(name: str) -> str:
    return name.strip("-.")
