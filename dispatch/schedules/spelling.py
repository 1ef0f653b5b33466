"""How a field of a cron pattern is spelled so that every reader takes it alike, or is refused in words."""

from __future__ import annotations

import re

from dispatch.operator_files.problems import shown
from dispatch.schedules.pattern_fields import DAY, WEEKDAY, Field, PatternError

_VALUE = r"(?:[0-9]{1,9}|[a-z]{3})"
_RANGE = re.compile(rf"(?P<low>\*|{_VALUE})(?:-(?P<high>{_VALUE}))?(?:/(?P<step>[0-9]{{1,9}}))?")
_HASHED = re.compile(r"h(?:\((?P<low>[0-9]{1,9})-(?P<high>[0-9]{1,9})\))?(?:/(?P<step>[0-9]{1,9}))?")
_NTH = re.compile(rf"(?P<day>{_VALUE})#(?P<nth>[0-9]{{1,9}})")
_LAST = re.compile(rf"(?P<day>{_VALUE})l|l(?P<other>{_VALUE})")


def spelled(field: Field, text: str) -> str:
    """Write a field as croniter takes it without doubt."""
    if text == "?" and field.name in {DAY, WEEKDAY}:
        return "*"
    if hashed := _HASHED.fullmatch(text):
        return _spelled_hashed(field, hashed)
    terms = text.split(",")
    if field.is_weekday and 0 < sum(_is_of_a_month(term) for term in terms) < len(terms):
        raise PatternError(
            f"mixes days of every week with days of the month in its {field.name} field ({shown(text)});"
            " allowed are days like fri, or days like 5L and 5#2"
        )
    return ",".join(_spelled_term(field, term) for term in terms)


def _is_of_a_month(term: str) -> bool:
    return bool(_NTH.fullmatch(term) or _LAST.fullmatch(term))


def _spelled_hashed(field: Field, hashed: re.Match[str]) -> str:
    low, high = field.low, field.high_hashed or field.high
    if hashed["low"]:
        low, high = int(hashed["low"]), int(hashed["high"])
        if not field.low <= low < high <= field.high:
            raise PatternError(
                f"has {shown(hashed[0].upper())} in its {field.name} field; allowed is H(a-b) with a below b,"
                f" both of {field.low} to {field.high}"
            )
    step = f"/{field.step(hashed['step'])}" if hashed["step"] else ""
    return f"h({low}-{high}){step}"


def _spelled_term(field: Field, term: str) -> str:
    if term == "l" and field.name == DAY:
        return term
    if field.is_weekday:
        if last := _LAST.fullmatch(term):
            return f"l{field.number(last['day'] or last['other']) % 7}"
        if nth := _NTH.fullmatch(term):
            if not 1 <= int(nth["nth"]) <= 5:
                raise field.refused(term)
            return f"{field.number(nth['day']) % 7}#{int(nth['nth'])}"
    found = _RANGE.fullmatch(term)
    if found is None or (found["low"] == "*" and found["high"]):
        raise field.refused(term)
    return _spelled_range(field, found)


def _spelled_range(field: Field, found: re.Match[str]) -> str:
    """Spell `*`, `a`, `a-b` and their steps; a range of one value is that value, not the whole field."""
    step = field.step(found["step"]) if found["step"] else 1
    if found["low"] == "*":
        return f"*/{step}" if step > 1 else "*"
    low = high = field.number(found["low"])
    if found["high"]:
        # The week may be said to end with Sunday, not to begin before it.
        high = 7 if field.is_weekday and found["high"] == "sun" and low else field.number(found["high"])
    elif found["step"]:
        if field.is_weekday:
            raise PatternError(
                f"has {shown(found[0])} in its {field.name} field, which some read to Saturday and some to"
                f" Sunday; allowed is {low}-6/{step} or {low}-7/{step}"
            )
        high = field.high
    if low > high:
        raise PatternError(
            f"has the range {shown(found[0])} in its {field.name} field, which ends before it begins;"
            " allowed is the lower value first, or two ranges in a list"
        )
    values = range(low, high + 1, step)
    return ",".join(str(value % 7 if field.is_weekday else value) for value in values)
