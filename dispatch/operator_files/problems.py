"""What is wrong with an operator's file: every problem of it at once, each with its place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pidispatch_site.errors import ConfigurationError

_SHOWN_CHARACTERS = 100
# A file of another kind, given by mistake, is wrong in thousands of places.
MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    `place` is where, in words of ours that may be logged (`windows[3].from`; empty: the file as a whole);
    `text` says what was found and what is allowed, for the person who wrote the file.
    """

    place: str
    text: str


class OperatorFileError(ConfigurationError):
    """A file of the operator does not load; `places` is what a log line may say of it.

    Beyond the first `MOST_TOLD` problems only their number is told.
    """

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        told = problems[:MOST_TOLD]
        more = len(problems) - len(told)
        rest = (f"{name}: has {more} more problems",) if more else ()
        super().__init__(*(_line(name, one) for one in told), *rest)
        self.places = tuple(one.place or "file" for one in told)


def shown(value: object) -> str:
    """Show a found value in a message: escaped, and cut where it is no longer of use."""
    is_word = value is None or isinstance(value, bool)
    text = json.dumps(value) if is_word else ascii(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."


def _line(name: str, problem: Problem) -> str:
    return f"{name}: {problem.place} {problem.text}" if problem.place else f"{name}: {problem.text}"
