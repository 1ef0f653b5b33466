"""What the job's own last words say (E 1.6, 1.8): telemetry, written by untrusted code.

Everything read here may fill a field of the record and choose a label; it never decides whether an attempt is
repeated or paid back (`runs.exits` does, from the exit code and our abort flag). Whatever is not exactly of
the expected shape is None, and nothing here raises.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

TAIL_UNITS = 8192
"""How much of the end of the output is looked at, in UTF-16 units."""

COUNTERS = (
    *("calls", "input", "output", "cacheRead", "cacheWrite"),
    *("cacheWrite1h", "reasoning", "total", "cost", "unpriced"),
)
MAX_MODELS = 9

_ANCHOR = '{"event":"'
_LARGEST_SAFE_INTEGER = 2**53 - 1
_MODEL_ID = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,63}")
_VERSION = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(-[0-9A-Za-z.-]{1,32})?")
_TOKEN = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitLine:
    """The last exit line; a field is None when it was not reported or is not of its shape.

    `tokens` is the object as reported (it holds a number `total`): take `recorded_tokens` of it for a record.
    `usage`, `session` and `context` are rebuilt from checked values. `reason` is a token, never text.
    """

    turns: int | None = None
    tokens: Mapping[str, Any] | None = None
    session: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    context: Mapping[str, int] | None = None
    reason: str | None = None


NOTHING = ExitLine()


def read(tail: bytes) -> ExitLine:
    """Find the last exit line in the end of a container's output."""
    return parse(last_units(tail.decode("utf-8", errors="replace"), TAIL_UNITS))


def last_units(text: str, units: int) -> str:
    """Keep the end of a text, counted in UTF-16 units as the reference does; a cut pair is dropped whole."""
    kept = text[-units:]
    surplus = len(kept) + sum(letter > "\uffff" for letter in kept) - units
    start = 0
    while surplus > 0:
        surplus -= 2 if kept[start] > "\uffff" else 1
        start += 1
    return kept[start:]


def parse(text: str) -> ExitLine:
    """Read the last line that is an exit event; an empty one wins over an earlier one that says more."""
    for line in reversed(text.split("\n")):
        found = _exit_event(line)
        if found is not None:
            return ExitLine(
                turns=_integer(found.get("turns")),
                tokens=_tokens(found.get("tokens")),
                session=_session(found.get("session")),
                usage=_usage(found.get("usage")),
                context=_context(found.get("context")),
                reason=_token(found.get("reason")),
            )
    return NOTHING


def recorded_tokens(tokens: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Pick what a record may hold of `ExitLine.tokens`: four numbers and the mark of a partial meter."""
    if tokens is None:
        return None
    kept: dict[str, Any] = {name: _number(tokens.get(name)) for name in ("input", "output", "total", "cost")}
    if tokens.get("metered") is False:
        kept["metered"] = False
    return kept


def _exit_event(line: str) -> dict[str, Any] | None:
    for candidate in _candidates(line):
        try:
            value = json.loads(
                candidate, parse_constant=_not_json, parse_float=_finite_float, parse_int=_bounded_int
            )
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) and value.get("event") == "exit" else None
    return None


def _candidates(line: str) -> Iterator[str]:
    """Yield the line, then what remains of it when bytes that were glued in front are cut off."""
    if "{" not in line:
        return
    yield line
    start = line.find(_ANCHOR)
    while start >= 0:
        yield line[start:]
        start = line.find(_ANCHOR, start + 1)


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite_float(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _bounded_int(text: str) -> int | float | None:
    # Python counts without end; a number of hundreds of digits is none that a record or a row can hold.
    return int(text) if len(text) <= len(str(_LARGEST_SAFE_INTEGER)) else _finite_float(text)


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _integer(value: object) -> int | None:
    number = _number(value)
    if number is None or number != int(number) or abs(number) > _LARGEST_SAFE_INTEGER:
        return None
    return int(number)


def _count(value: object, *, least: int = 0) -> int | None:
    number = _integer(value)
    return number if number is not None and number >= least else None


def _token(value: object) -> str | None:
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None


def _tokens(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) and _number(value.get("total")) is not None else None


def _session(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict) or not isinstance(value.get("resumed"), bool):
        return None
    return {"resumed": value["resumed"], "reason": _token(value.get("reason"))}


def _context(value: object) -> dict[str, int] | None:
    if not isinstance(value, dict):
        return None
    tokens, window = _count(value.get("tokens")), _count(value.get("window"), least=1)
    return None if tokens is None or window is None else {"tokens": tokens, "window": window}


def _usage(value: object) -> dict[str, Any] | None:
    """Rebuild the block from checked parts; one part that is wrong drops the whole."""
    if not isinstance(value, dict):
        return None
    version, truncated = _count(value.get("v"), least=1), _count(value.get("truncated", 0))
    pi_ai, rows = value.get("piAi"), value.get("models")
    if version is None or truncated is None or not isinstance(rows, list):
        return None
    if pi_ai is not None and not (isinstance(pi_ai, str) and _VERSION.fullmatch(pi_ai)):
        return None
    models = [_usage_row(row) for row in rows]
    if not 1 <= len(models) <= MAX_MODELS or None in models:
        return None
    return {"v": version, "piAi": pi_ai, "truncated": truncated, "models": models}


def _usage_row(row: object) -> dict[str, Any] | None:
    if not isinstance(row, dict):
        return None
    names = {key: _model_id(row.get(key)) for key in ("provider", "model")}
    counts = {name: _number(row.get(name, 0)) for name in COUNTERS}
    if None in names.values() or any(count is None or count < 0 for count in counts.values()):
        return None
    return {**names, **counts}


def _model_id(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    lowered = value.lower()
    return lowered if _MODEL_ID.fullmatch(lowered) else None
