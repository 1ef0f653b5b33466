"""What a value in a run record may be: readers that return it in our form or raise `ShapeError`.

Whatever passes here fits a file, a column of SQLite or PostgreSQL and a page: texts are bounded and free of
NUL and lone surrogates, numbers are finite and within JavaScript's safe range, objects hold only known keys.
Null and a missing key are the same: absent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")

MAX_TEXT_CHARACTERS = 512
MAX_SAFE_INTEGER = 2**53 - 1
MAX_USAGE_ROWS = 9
COUNTERS = (
    *("calls", "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h"),
    *("reasoning", "total", "cost", "unpriced"),
)
TOKEN_CLASSES = ("input", "output", "total", "cost")

_TOKEN = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class ShapeError(ValueError):
    """The value is no such thing; the message says what was expected, never what was found."""


def maybe(read: Callable[[object], T]) -> Callable[[object], T | None]:
    """Make a reader that lets None pass."""
    return lambda value: None if value is None else read(value)


def or_none(read: Callable[[object], T], value: object) -> T | None:
    """Read what somebody else reported: anything of the wrong shape counts as not reported."""
    try:
        return read(value)
    except ShapeError:
        return None


def identity(value: object) -> str:
    """Read a text that names something: cleaned, never shortened."""
    if not isinstance(value, str):
        raise ShapeError("a text is expected")
    if value.isascii() and "\0" not in value:
        return value
    joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _UNSTORABLE.sub("\ufffd", joined)


def text(value: object) -> str:
    """Read a short text: cleaned, and cut after MAX_TEXT_CHARACTERS."""
    return identity(value)[:MAX_TEXT_CHARACTERS]


def token(value: object) -> str:
    """Read a word of a closed vocabulary, ours or a later version's: lower-case letters, digits, dashes."""
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise ShapeError("a word of lower-case letters, digits and dashes is expected")
    return str(value)


def flag(value: object) -> bool:
    """Read true or false, nothing that only counts as such."""
    if not isinstance(value, bool):
        raise ShapeError("true or false is expected")
    return value


def whole(value: object) -> int:
    """Read a whole number that every reader of JSON keeps exactly."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_SAFE_INTEGER:
        raise ShapeError("a whole number is expected")
    return value


def count(value: object) -> int:
    """Read a whole number from 0."""
    if whole(value) < 0:
        raise ShapeError("a number from 0 is expected")
    return whole(value)


def number(value: object) -> int | float:
    """Read a finite number from 0; an amount of tokens or of money."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ShapeError("a number is expected")
    if not math.isfinite(value) or not 0 <= value <= MAX_SAFE_INTEGER:
        raise ShapeError("a finite number from 0 is expected")
    return value


def instant(value: object) -> datetime:
    """Read an ISO 8601 instant with its zone; answered in UTC, cut to milliseconds."""
    if not isinstance(value, str):
        raise ShapeError("an instant is expected")
    try:
        read = datetime.fromisoformat(value)
        if read.tzinfo is None:
            raise ShapeError("an instant with a time zone is expected")
        return in_milliseconds(read)
    except (ValueError, OverflowError) as error:
        raise ShapeError("an instant is expected") from error


def in_milliseconds(value: datetime) -> datetime:
    """Cut an instant to what a record keeps: UTC, whole milliseconds."""
    moment = value.astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def iso(value: datetime) -> str:
    """Write an instant as the records do: `2026-01-05T10:00:00.000Z`."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def mapping(value: object) -> Mapping[str, Any]:
    """Read a JSON object."""
    if not isinstance(value, Mapping):
        raise ShapeError("an object is expected")
    return value


def tokens(value: object) -> dict[str, int | float | bool | None]:
    """Read what a run used: `{input, output, total, cost}`, and `metered` when it was reported."""
    given = mapping(value)
    number(given.get("total"))
    kept: dict[str, int | float | bool | None] = {key: maybe(number)(given.get(key)) for key in TOKEN_CLASSES}
    if isinstance(given.get("metered"), bool):
        kept["metered"] = given["metered"]
    return kept


def session(value: object) -> dict[str, Any]:
    """Read whether the run went on with an earlier conversation: `{resumed, reason, bytes}`."""
    given = mapping(value)
    return {
        "resumed": flag(given.get("resumed")),
        "reason": maybe(token)(given.get("reason")),
        "bytes": maybe(count)(given.get("bytes")),
    }


def usage(value: object) -> dict[str, Any]:
    """Read what each model of a run used: `{v, piAi, truncated, models}` with 1 to 9 rows."""
    given = mapping(value)
    rows = given.get("models")
    if not isinstance(rows, (list, tuple)) or not 1 <= len(rows) <= MAX_USAGE_ROWS:
        raise ShapeError("1 to 9 models are expected")
    return {
        "v": count(given.get("v")),
        "piAi": maybe(text)(given.get("piAi")),
        "truncated": count(given.get("truncated", 0)),
        "models": [_usage_row(mapping(row)) for row in rows],
    }


def _usage_row(row: Mapping[str, Any]) -> dict[str, Any]:
    counters = {key: number(row[key]) for key in COUNTERS if row.get(key) is not None}
    return {"provider": text(row.get("provider")), "model": text(row.get("model")), **counters}
