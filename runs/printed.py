"""What a job printed, made harmless for a page: text, without what steers a terminal or turns text around."""

from __future__ import annotations

import re

# A control sequence, a string to the terminal (a title, a link) with its end, or a lone escape.
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{0,8}[0-~]?"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)
_LINE_ENDS = re.compile(r"\r+\n|\r+")
# Controls, marks that reorder or hide text, and what is no character.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_REPLACEMENT = "\ufffd"


def harmless(data: bytes) -> str:
    """Turn output into text of printable characters, tabs and line ends; colours are dropped."""
    text = _SEQUENCES.sub("", data.decode("utf-8", "replace"))
    return _UNSEEN.sub(_REPLACEMENT, _LINE_ENDS.sub("\n", text))
