"""Takes places of this machine out of what is said on a page (D17): whoever views it need not know them.

Findings and errors are written for a shell on the machine, and name the files they speak of. On a page
stands the variable that names the place, or that there was a path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "(a path)"
_NAMES = re.compile(r"HOME|TMPDIR|PI_[A-Z0-9_]+")
_PLACE_NAMES = re.compile(r"[A-Z0-9_]+_(?:FILE|DIR|FOLDER)")
_REST = r"[^\s'\",;:()<>]*"
# What is veiled already stays as it is.
_SOCKET = re.compile(rf"unix://(?!\(){_REST}")
# Not the slashes inside of a word, of an address or of a fraction.
_BEGINS = r"(?:(?<![\w/.$~])~?/|(?<![\w/.$~:])~?//+)"
_PATH = re.compile(rf"{_BEGINS}(?=[^\s'\",;:()<>/]){_REST}")


def veiled(text: str, environment: Mapping[str, str]) -> str:
    """Replace every path in `text`; `environment` has the variables that may name one."""
    for value, name in _places(environment):
        text = re.sub(rf"{re.escape(value)}{_REST}", f"${name}", text)
    return _PATH.sub(HIDDEN, _SOCKET.sub(f"unix://{HIDDEN}", text))


def _places(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give each path that a variable holds, the longest first, with the variable's name."""
    found = {
        value.rstrip("/"): name
        for name, value in sorted(environment.items(), reverse=True)
        if _NAMES.fullmatch(name) and _is_place(name, value)
    }
    return sorted(found.items(), key=lambda one: -len(one[0]))


def _is_place(name: str, value: str) -> bool:
    if len(value.strip("/.~ ")) == 0:
        return False
    return value.startswith(("/", "~/", "./", "../")) or ("/" in value and bool(_PLACE_NAMES.fullmatch(name)))
