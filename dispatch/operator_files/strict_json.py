"""JSON as an operator's file may be written: one value, each key once, nothing only some readers take."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from dispatch.operator_files.problems import OperatorFileError, Problem, shown

MAX_BYTES = 1024 * 1024


class _RefusedError(ValueError):
    """What stands there is JSON to some parsers and not to us; the text says why."""


def load(content: bytes, *, name: str) -> Any:
    """Read the whole content of the file of this name; OperatorFileError for what is no strict JSON.

    A duplicate key anywhere is refused: what a reviewer read and what counts would differ.
    """
    if len(content) > MAX_BYTES:
        raise _error(name, f"has {len(content)} bytes; allowed are {MAX_BYTES}")
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise _error(name, f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _error(name, f"is not JSON: {error.msg} at {where}") from error
    except (_RefusedError, RecursionError) as error:
        raise _error(
            name, str(error) if isinstance(error, _RefusedError) else "is nested too deep"
        ) from error
    except ValueError as error:
        # A whole number of more digits than Python reads.
        raise _error(name, "holds a number that is too long") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RefusedError(f"has the key {shown(key)} twice in one object; write it once")
        found[key] = value
    return found


def _constant(word: str) -> NoReturn:
    raise _RefusedError(f"holds {word}, which is no number of JSON")


def _error(name: str, text: str) -> OperatorFileError:
    return OperatorFileError(name, [Problem("", text)])
