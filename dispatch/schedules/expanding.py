"""From the text of a cron pattern to the values of its six fields.

croniter reads the fields, spelled without doubt, and hashes `H`; cronsim is handed plain values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from croniter import CroniterError, croniter

from dispatch.operator_files.problems import shown
from dispatch.schedules.pattern_fields import DAY, FIELDS, SECOND, WEEKDAY, Field, PatternError
from dispatch.schedules.spelling import spelled

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
# As some crons have it.
_ZONES = ("tz=", "cron_tz=")
_ODD = re.compile(r"[^\x21-\x7e \t]")


@dataclass(frozen=True, slots=True)
class Expanded:
    """A pattern in cronsim's spelling: six fields of plain values, seconds first.

    `elapsed`: it goes by elapsed time; else it names times of the clock (D5).
    """

    text: str
    elapsed: bool


# A schedule is judged when its file is loaded, and read again when it is installed and each time it fires.
@lru_cache(maxsize=4096)
def expand(pattern: str, *, schedule_id: str) -> Expanded:
    """Read a pattern of 5 or 6 fields (6: seconds first) or an `@name`; PatternError says why not.

    `H` becomes a value that is the same for this id everywhere. A field that names each of its values is like
    `*` and restricts nothing; where both fields of days restrict, a day has to match one of them.
    """
    fields = _split(pattern)
    text = " ".join(spelled(field, text) for field, text in zip((SECOND, *FIELDS), fields, strict=True))
    hash_id = schedule_id.encode("utf-8", "replace")
    try:
        values, nth = croniter.expand(text, hash_id=hash_id, second_at_beginning=True)
    except CroniterError as error:
        raise PatternError(f"is {shown(pattern)}, which croniter does not read") from error
    *others, second = values
    texts = [_written(field, found) for field, found in zip(FIELDS, others, strict=True)]
    if nth:
        texts[-1] = ",".join(_nth(day, which) for day in sorted(nth) for which in sorted(nth[day], key=str))
        _refuse_doubt(texts)
    _refuse_never(others, texts)
    return Expanded(
        " ".join([_written(SECOND, second), *texts]),
        elapsed=any(sign in text for text in fields[1:3] for sign in "*/"),
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
    if text.startswith(_ZONES):
        raise PatternError(
            "begins with a time zone; allowed is the pattern alone, and the zone in tz beside it"
        )
    if text.startswith("@"):
        if text not in MACROS:
            raise PatternError(
                f"is {shown(text)}; allowed are {', '.join(MACROS)} and patterns of 5 or 6 fields"
            )
        text = MACROS[text]
    fields = text.split()
    if len(fields) not in {5, 6}:
        raise PatternError(
            f"has {len(fields)} {'field' if len(fields) == 1 else 'fields'}; allowed are 5"
            " (minute hour day-of-month month day-of-week)"
            " or 6 (second first)"
        )
    return fields if len(fields) == 6 else ["0", *fields]


def _written(field: Field, values: Sequence[int | str]) -> str:
    """Write a field for cronsim: plain values, or a star where nothing is restricted."""
    if "*" in values or len(set(values)) == field.size:
        return "*"
    return ",".join("L" if value == "l" else str(value) for value in values)


def _nth(day: int, which: int | str) -> str:
    return f"{day}L" if which == "l" else f"{day}#{which}"


def _refuse_doubt(texts: Sequence[str]) -> None:
    """Refuse 5L and 5#2 beside days of the month."""
    if texts[2] != "*":
        raise PatternError(
            f"has days in its {DAY} field beside {texts[4]} in its {WEEKDAY} field, which some read as either"
            " and some as both; allowed is one of the two, or two schedules"
        )


def _refuse_never(values: Sequence[Sequence[int | str]], texts: list[str]) -> None:
    """Refuse a day that none of the months has; a restricted day of the week would come all the same."""
    days, months = values[2:4]
    if texts[4] != "*" or "*" in {texts[2], texts[3]} or "l" in days:
        return
    first = min(int(day) for day in days)
    if all(first > _LONGEST_MONTHS.get(int(month), 31) for month in months):
        raise PatternError(
            f"has the day {first} in its {DAY} field and never fires: none of its months has that day;"
            " allowed is a day that one of them has"
        )
