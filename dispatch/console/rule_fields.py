"""A row of pause windows or scoped limits as a form has it, and the row that the form makes of it.

Nothing is judged here: what a field holds goes into the row as it was typed, and the parser says what is
wrong with it. A field that is left as it was keeps what the file has, in the file's own spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from dispatch.operator_files.integers import whole_number
from dispatch.operator_files.pause_windows import WEEKDAYS, weekday_of

_LONGEST_NUMBER = 16
_ON = "on"


class FieldKind(StrEnum):
    """How a field is typed."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    DAYS = "days"


@dataclass(frozen=True, slots=True)
class Choice:
    """One day of the week, ticked or not."""

    value: str
    label: str
    is_set: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleField:
    """A field: the key of the row, its label, what is allowed in short; `problem` is what is wrong with it.

    `value` is text as it is typed; of days their three letters, with commas between.
    """

    name: str
    label: str
    help: str
    kind: FieldKind = FieldKind.TEXT
    value: str = ""
    problem: str = ""

    @property
    def is_set(self) -> bool:
        """Whether a flag is on."""
        return self.value == _ON

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The days to tick."""
        ticked = self.value.split(",")
        return tuple(Choice(day, day.capitalize(), day in ticked) for day in WEEKDAYS)


Fields = tuple[RuleField, ...]


def has_form(fields: Fields, row: object) -> bool:
    """Tell whether the form can show the row without losing anything of the fields that it has."""
    return isinstance(row, dict) and all(
        _text(field.kind, row[field.name]) is not None for field in fields if field.name in row
    )


def of_row(fields: Fields, row: Mapping[str, Any]) -> Fields:
    """Fill the form from a row that has one."""
    return tuple(replace(field, value=_shown(field, row)) for field in fields)


def of_texts(fields: Fields, texts: Callable[[str], Sequence[str]]) -> Fields:
    """Fill the form with what a person typed; `texts` answers all that was sent under a name."""
    return tuple(
        replace(field, value=",".join(text.strip() for text in texts(field.name) if text.strip()))
        for field in fields
    )


def row_of(fields: Fields, before: Mapping[str, Any]) -> dict[str, Any]:
    """Make the row: what the form has no field for stays as it was; what is blank is not in it."""
    made = dict(before)
    for field in fields:
        if field.value == _shown(field, before):
            continue
        if field.value:
            made[field.name] = _value(field)
        else:
            made.pop(field.name, None)
    return made


def with_problems(fields: Fields, problems: Mapping[str, Sequence[str]]) -> Fields:
    """Put what is wrong with the row, by its keys, beside the fields."""
    return tuple(
        replace(field, problem=" ".join(f"It {said}." for said in problems.get(field.name, ())))
        for field in fields
    )


def _shown(field: RuleField, row: Mapping[str, Any]) -> str:
    return (_text(field.kind, row[field.name]) or "") if field.name in row else ""


def _text(kind: FieldKind, value: object) -> str | None:
    """Write a value as it is typed; None for one that cannot be typed into such a field."""
    if kind is FieldKind.FLAG:
        return _ON if value is True else None
    if kind is FieldKind.DAYS:
        return _days(value)
    if kind is FieldKind.TEXT:
        return value if isinstance(value, str) and value == value.strip() and value.isprintable() else None
    # Also for a program that writes every key.
    number = whole_number(value)
    return "" if value is None else None if number is None else str(number)


def _days(value: object) -> str | None:
    if not (isinstance(value, list) and value and all(isinstance(one, str) for one in value)):
        return None
    found = [weekday_of(one.strip()) for one in value]
    days = sorted({day for day in found if day is not None})
    return None if None in found else ",".join(WEEKDAYS[day] for day in days)


def _value(field: RuleField) -> Any:
    if field.kind is FieldKind.FLAG:
        return True
    if field.kind is FieldKind.DAYS:
        return field.value.split(",")
    is_number = field.value.isascii() and field.value.isdigit() and len(field.value) <= _LONGEST_NUMBER
    return int(field.value) if field.kind is FieldKind.NUMBER and is_number else field.value
