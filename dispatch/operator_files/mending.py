"""What an author most likely meant where a text stops being JSON: the parser says only where that is."""

from __future__ import annotations

from collections.abc import Mapping

_COMMENT = "JSON has no comments; take it out"
_QUOTES = 'quotes are plain and double, as in "on"'
_WORDS = "true, false and null are written small"
# By what stands where the parser stopped.
_BY_LETTER: Mapping[str, str] = {
    **dict.fromkeys("/#", _COMMENT),
    **dict.fromkeys("'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb", _QUOTES),
    **dict.fromkeys("TFN", _WORDS),
}
_ESCAPE = "a backslash is written twice, as in C:\\\\work"


def hint(text: str, position: int, problem: str) -> str:
    """Say how to mend it, as ` (…)`; nothing where that cannot be told.

    `problem` is the parser's message, `position` where in the text it stopped.
    """
    if not text.strip():
        return " (there is nothing in it)"
    if "escape" in problem:
        return f" ({_ESCAPE})"
    here, before = text[position : position + 1], text[:position].rstrip()[-1:]
    if here in {"}", "]"} and before == ",":
        return f" (no comma before the {here})"
    if not here:
        return " (the end of it is missing)"
    return f" ({_BY_LETTER[here]})" if here in _BY_LETTER else ""
