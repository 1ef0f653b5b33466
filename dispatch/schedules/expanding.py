"""From the text of a cron pattern to the values of its six fields.

croniter reads the fields and hashes `H`; cronsim is handed plain values. What the two, or other readers of
cron, would take differently is spelled without doubt before croniter sees it, or refused in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from croniter import CroniterError, croniter

from dispatch.operator_files.problems import shown

# Room for a field that lists each of its values; what is longer is no pattern that a person wrote.
MAX_CHARACTERS = 512

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LONGEST_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_BLANKS = " \t"
_ODD = re.compile(r"[^\x21-\x7e \t]")
_VALUE = r"(?:[0-9]{1,9}|[a-z]{3})"
_RANGE = re.compile(rf"(?P<low>\*|{_VALUE})(?:-(?P<high>{_VALUE}))?(?:/(?P<step>[0-9]{{1,9}}))?")
_HASHED = re.compile(r"h(?:\((?P<low>[0-9]{1,9})-(?P<high>[0-9]{1,9})\))?(?:/(?P<step>[0-9]{1,9}))?")
_NTH = re.compile(rf"(?P<day>{_VALUE})#(?P<nth>[0-9]{{1,9}})")
_LAST = re.compile(rf"(?P<day>{_VALUE})l|l(?P<other>{_VALUE})")


class PatternError(ValueError):
    """A pattern that is refused: what was found and what is allowed, to go on after the pattern's place."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A pattern in cronsim's spelling: six fields of plain values, seconds first.

    `elapsed`: it goes by elapsed time; else it names times of the clock (D5).
    """

    text: str
    elapsed: bool


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    # Of days of the month only those that every month has.
    high_hashed: int = 0

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def is_weekday(self) -> bool:
        return self.name == _WEEKDAY

    def allowed(self) -> str:
        words = f", {self.names[0]} to {self.names[-1]}" if self.names else ""
        more = {_DAY: ", L (the last day)", _WEEKDAY: ", 5L (the last Friday), 5#2 (the second), 7 (Sunday)"}
        return (
            f"{self.low} to {self.high}{words}, *, a range a-b, a step /n, a list a,b,"
            f" H, H(a-b), H/n{more.get(self.name, '')}"
        )

    def number(self, text: str) -> int:
        if text in self.names:
            return self.names.index(text) + self.low
        high = 7 if self.is_weekday else self.high
        if not text.isdigit() or not self.low <= int(text) <= high:
            raise self.refused(text)
        return int(text)

    def step(self, text: str) -> int:
        if not 1 <= int(text) <= self.size:
            raise PatternError(
                f"has the step /{text} in its {self.name} field; allowed is /1 to /{self.size}"
            )
        return int(text)

    def refused(self, text: str) -> PatternError:
        return PatternError(f"has {shown(text)} in its {self.name} field; allowed is {self.allowed()}")


_DAY = "day-of-month"
_WEEKDAY = "day-of-week"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SECOND = _Field("second", 0, 59)
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field(_DAY, 1, 31, high_hashed=28),
    _Field("month", 1, 12, _MONTHS),
    _Field(_WEEKDAY, 0, 6, _WEEKDAYS),
)


def expand(pattern: str, *, schedule_id: str) -> Expanded:
    """Read a pattern of 5 or 6 fields (6: seconds first) or an `@name`; PatternError says why not.

    `H` becomes a value that is the same for this id everywhere. A field that names each of its values is like
    `*` and restricts nothing; where both fields of days restrict, a day has to match one of them.
    """
    fields = _split(pattern)
    spelled = [_spelled(field, text) for field, text in zip((_SECOND, *_FIELDS), fields, strict=True)]
    try:
        values, nth = croniter.expand(
            " ".join(spelled), hash_id=schedule_id.encode("utf-8", "replace"), second_at_beginning=True
        )
    except CroniterError as error:
        raise PatternError(f"is not a cron pattern: {error}") from error
    *others, second = values
    texts = [_written(field, found) for field, found in zip(_FIELDS, others, strict=True)]
    if nth:
        texts[-1] = ",".join(_nth(day, which) for day in sorted(nth) for which in sorted(nth[day], key=str))
        if texts[2] != "*":
            raise PatternError(
                f"has days in its {_DAY} field beside {texts[-1]} in its {_WEEKDAY} field, which some read as"
                " either and some as both; allowed is one of the two, or two schedules"
            )
    _refuse_never(others, texts)
    minute, hour = fields[1:3]
    return Expanded(
        " ".join([_written(_SECOND, second), *texts]), elapsed=any(sign in minute + hour for sign in "*/")
    )


def _split(pattern: str) -> list[str]:
    """Split into six fields in lower case, the seconds first."""
    if len(pattern) > MAX_CHARACTERS:
        raise PatternError(f"has {len(pattern)} characters; allowed are {MAX_CHARACTERS}")
    if odd := _ODD.search(pattern):
        raise PatternError(
            f"has the character {shown(odd[0])}; allowed are printable ASCII characters, blanks and tabs"
        )
    text = pattern.strip(_BLANKS).lower()
    if text.startswith("@"):
        if text not in MACROS:
            raise PatternError(
                f"is {shown(text)}; allowed are {', '.join(MACROS)} and patterns of 5 or 6 fields"
            )
        text = MACROS[text]
    fields = text.split()
    if len(fields) not in {5, 6}:
        raise PatternError(
            f"has {len(fields)} fields; allowed are 5 (minute hour day-of-month month day-of-week)"
            " or 6 (second first)"
        )
    return fields if len(fields) == 6 else ["0", *fields]


def _spelled(field: _Field, text: str) -> str:
    """Write a field as croniter takes it without doubt."""
    if text == "?" and field.name in {_DAY, _WEEKDAY}:
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


def _spelled_hashed(field: _Field, hashed: re.Match[str]) -> str:
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


def _spelled_term(field: _Field, term: str) -> str:
    if term == "l" and field.name == _DAY:
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


def _spelled_range(field: _Field, found: re.Match[str]) -> str:
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


def _written(field: _Field, values: Sequence[int | str]) -> str:
    """Write a field for cronsim: plain values, or a star where nothing is restricted."""
    if "*" in values or len(set(values)) == field.size:
        return "*"
    return ",".join("L" if value == "l" else str(value) for value in values)


def _nth(day: int, which: int | str) -> str:
    return f"{day}L" if which == "l" else f"{day}#{which}"


def _refuse_never(values: Sequence[Sequence[int | str]], texts: list[str]) -> None:
    """Refuse a day that none of the months has; a restricted day of the week would come all the same."""
    days, months = values[2:4]
    if texts[4] != "*" or "*" in {texts[2], texts[3]} or "l" in days:
        return
    first = min(int(day) for day in days)
    if all(first > _LONGEST_MONTHS.get(int(month), 31) for month in months):
        raise PatternError(
            f"has the day {first} in its {_DAY} field and never fires: none of its months has that day;"
            " allowed is a day that one of them has"
        )
