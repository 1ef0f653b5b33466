"""The six fields of a cron pattern, each spelled so that every reader of cron takes it alike.

What readers would take differently is spelled without doubt, or refused in words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dispatch.operator_files.problems import shown

_VALUE = r"(?:[0-9]{1,9}|[a-z]{3})"
_RANGE = re.compile(rf"(?P<low>\*|{_VALUE})(?:-(?P<high>{_VALUE}))?(?:/(?P<step>[0-9]{{1,9}}))?")
_HASHED = re.compile(r"h(?:\((?P<low>[0-9]{1,9})-(?P<high>[0-9]{1,9})\))?(?:/(?P<step>[0-9]{1,9}))?")
_NTH = re.compile(rf"(?P<day>{_VALUE})#(?P<nth>[0-9]{{1,9}})")
_LAST = re.compile(rf"(?P<day>{_VALUE})l|l(?P<other>{_VALUE})")


class PatternError(ValueError):
    """A pattern that is refused: what was found and what is allowed, to go on after the pattern's place."""


@dataclass(frozen=True, slots=True)
class Field:
    """One of the six: its values and, from `low` on, their names. Each refusal is a PatternError."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    # Of days of the month only those that every month has.
    high_hashed: int = 0

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.high - self.low + 1

    @property
    def is_weekday(self) -> bool:
        """Whether 7 is Sunday, and days of the month such as 5L may stand here."""
        return self.name == WEEKDAY

    def allowed(self) -> str:
        """Say what may stand here."""
        words = f", {self.names[0]} to {self.names[-1]}" if self.names else ""
        more = {DAY: ", L (the last day)", WEEKDAY: ", 5L (the last Friday), 5#2 (the second), 7 (Sunday)"}
        return (
            f"{self.low} to {self.high}{words}, *, a range a-b, a step /n, a list a,b,"
            f" H, H(a-b), H/n{more.get(self.name, '')}"
        )

    def number(self, text: str) -> int:
        """Read one value, given as a number or by its name."""
        if text in self.names:
            return self.names.index(text) + self.low
        high = 7 if self.is_weekday else self.high
        if not text.isdigit() or not self.low <= int(text) <= high:
            raise self.refused(text)
        return int(text)

    def step(self, text: str) -> int:
        """Read what follows a slash; one beyond the field would never be counted out."""
        if not 1 <= int(text) <= self.size:
            raise PatternError(
                f"has the step /{text} in its {self.name} field; allowed is /1 to /{self.size}"
            )
        return int(text)

    def refused(self, text: str) -> PatternError:
        """Say that a term may not stand here."""
        return PatternError(f"has {shown(text)} in its {self.name} field; allowed is {self.allowed()}")


DAY = "day-of-month"
WEEKDAY = "day-of-week"
MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SECOND = Field("second", 0, 59)
FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field(DAY, 1, 31, high_hashed=28),
    Field("month", 1, 12, MONTH_NAMES),
    Field(WEEKDAY, 0, 6, WEEKDAY_NAMES),
)


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
