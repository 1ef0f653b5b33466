"""One short text for what stands in a triggers file, equal on hosts that have the same schedules (Q 10.3).

The canonical text is the one that the reference's JavaScript writes, byte for byte, so that a host of either
kind agrees with the other.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping

from dispatch.triggers.entries import CronOn, Trigger, wire_run

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_EXACT = 2**53


def fingerprint(schedules: Iterable[Trigger] | None, *, zone: str) -> str:
    """Digest the cron entries of a file, in any order, and the host's zone: 16 hex digits.

    None (no file, or none that can be read now) is no opinion: the empty text. No entry is an opinion.
    """
    if schedules is None:
        return ""
    authored = [_authored(one, one.on) for one in schedules if isinstance(one.on, CronOn)]
    authored.sort(key=lambda one: str(one["schedulerId"]))
    return digest(canonical({"tz": zone, "schedules": authored}))


def digest(text: str) -> str:
    """Shorten a canonical text to 16 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def canonical(value: object) -> str:
    """Write a JSON value without blanks and with sorted keys, numbers and escapes as in JavaScript."""
    match value:
        case Mapping():
            members = ((_joined(str(key)), member) for key, member in value.items())
            inner = (f"{_text(key)}:{canonical(member)}" for key, member in sorted(members, key=_code_units))
            return "{" + ",".join(inner) + "}"
        case list() | tuple():
            return "[" + ",".join(map(canonical, value)) + "]"
        case str():
            return _text(_joined(value))
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            return _number(value)
        case _:
            raise TypeError(f"{type(value).__name__} is no JSON value")


def _authored(trigger: Trigger, on: CronOn) -> dict[str, object]:
    # A zone of its own is ours, not the reference's: it counts where it is set.
    own_zone = {} if on.tz is None else {"tz": on.tz}
    return {"schedulerId": on.id, "pattern": on.pattern, "run": wire_run(trigger.run), **own_zone}


def _code_units(member: tuple[str, object]) -> bytes:
    """Order by UTF-16: there what is beyond U+FFFF stands before what is just below it."""
    return member[0].encode("utf-16-be", "surrogatepass")


def _joined(text: str) -> str:
    """Join the halves of characters that belong together."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _text(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", written)


def _number(value: float) -> str:
    if isinstance(value, int) and abs(value) <= _EXACT:
        return str(value)
    try:
        value = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(value):
        return "null"
    return _double(value)


def _double(value: float) -> str:
    """Write the shortest digits that mean this number; with an exponent below 1e-6 and from 1e21 on."""
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    if -6 < point <= 21:
        if point >= len(digits):
            return sign + digits.ljust(point, "0")
        if point > 0:
            return f"{sign}{digits[:point]}.{digits[point:]}"
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"
