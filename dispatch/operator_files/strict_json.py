"""JSON as an operator's file may be written: one value, each key once, nothing only some readers take."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from dispatch.operator_files.mending import hint
from dispatch.operator_files.problems import OperatorFileError, Problem, shown

# Two thousand triggers, each with a page of a task.
MAX_BYTES = 8 * 1024 * 1024
# No file of ours needs more; what reads a value may then take its depth for granted.
MAX_DEPTH = 32
#: Of what is said of keys that mean nothing.
MOST_UNKNOWN = 20
_KEY_CHARACTERS = 60
# Where a name and a secret may have changed places.
_SECRETS = "secrets"

Steps = tuple[str | int, ...]


def load(content: bytes, *, name: str) -> Any:
    """Read the whole content of the file of this name; OperatorFileError for what is no strict JSON.

    A duplicate key anywhere is refused: what a reviewer read and what counts would differ.
    """
    if len(content) > MAX_BYTES:
        raise _error(name, f"has {len(content)} bytes; allowed are {MAX_BYTES}")
    reading = _Reading()
    try:
        value = reading.read(content)
    except UnicodeDecodeError as error:
        raise _error(name, f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}{hint(error.doc, error.pos, error.msg)}"
        raise _error(name, f"is not JSON: {error.msg.removesuffix(' at')} at {where}") from error
    except RecursionError as error:
        raise _error(name, _TOO_DEEP) from error
    except ValueError as error:
        # A whole number of more digits than Python reads.
        raise _error(name, "holds a number that is too long") from error
    if problems := [*reading.problems, *reading.problems_of(value)]:
        raise OperatorFileError(name, problems)
    return value


def unknown_keys(content: bytes, *, part: str, known: Collection[str]) -> tuple[str, ...]:
    """Name what means nothing in the rows of a file that loads: `windows[0].timezone`, escaped and cut."""
    rows = of_loaded(content)[part]
    return unknown_in((f"{part}[{index}]", row, known) for index, row in enumerate(rows))


def of_loaded(content: bytes) -> Any:
    """Read the content of a file that `load` has taken, unjudged."""
    return json.loads(content.decode("utf-8-sig"))


def unknown_in(objects: Iterable[tuple[str, Mapping[str, Any], Collection[str]]]) -> tuple[str, ...]:
    """Name the first keys that mean nothing: `windows[0].timezone`, escaped and cut.

    Each object comes with its place before it and the keys that are known there behind it.
    """
    places = (
        f"{place}.{shown(key)[1:-1][:_KEY_CHARACTERS]}"
        for place, found, known in objects
        for key in found
        if key not in known
    )
    return tuple(islice(places, MOST_UNKNOWN))


_TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels"


class _Reading:
    """One pass over a file, which remembers what is wrong instead of stopping there."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._twice: list[tuple[dict[str, Any], str]] = []

    def read(self, content: bytes) -> Any:
        text = content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=self._object, parse_constant=self._constant)

    def problems_of(self, value: Any) -> Iterator[Problem]:
        """Tell what only the whole value shows: its depth, and where the keys stand that it has twice."""
        if _is_too_deep(value):
            yield Problem("", _TOO_DEEP)
        elif self._twice:
            steps_to = {id(node): steps for node, steps in _nodes(value)}
            for node, key in self._twice:
                # An object that its own key's repetition replaced is not in the value any more.
                steps = steps_to.get(id(node))
                what = "a key" if steps is None or _SECRETS in steps else f"the key {shown(key)}"
                place = _written(steps or ())
                where = f" ({place})" if place else ""
                yield Problem("", f"has {what} twice in one object; write it once{where}")

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self._twice.extend((found, key) for key, count in counts.items() if count > 1)
        return found

    def _constant(self, word: str) -> None:
        self.problems.append(Problem("", f"holds {word}, which is no number of JSON"))


def _is_too_deep(value: Any) -> bool:
    level = _nested([value])
    for _ in range(MAX_DEPTH):
        level = [one for node in level for one in _nested(node.values() if isinstance(node, dict) else node)]
    return bool(level)


def _nested(values: Iterable[Any]) -> list[dict[str, Any] | list[Any]]:
    return [value for value in values if isinstance(value, dict | list)]


def _nodes(value: Any) -> Iterator[tuple[Any, Steps]]:
    """Walk the objects and lists of an object or list, each with the keys and indexes that lead to it."""
    waiting: list[tuple[Any, Steps]] = [(value, ())]
    while waiting:
        node, steps = waiting.pop()
        yield node, steps
        children = node.items() if isinstance(node, dict) else enumerate(node)
        waiting.extend((child, (*steps, step)) for step, child in children if isinstance(child, dict | list))


def _written(steps: Steps) -> str:
    """Write a way into a value as `windows[3].days`; not further than to where secrets stand."""
    steps = steps[: steps.index(_SECRETS) + 1] if _SECRETS in steps else steps
    parts = (f"[{step}]" if isinstance(step, int) else f".{shown(step)[1:-1]}" for step in steps)
    return "".join(parts).removeprefix(".")


def _error(name: str, text: str) -> OperatorFileError:
    return OperatorFileError(name, [Problem("", text)])
