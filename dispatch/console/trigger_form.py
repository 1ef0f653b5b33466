"""The common fields of a schedule as a form has them, and the entry that they make of one that was there.

Nothing is judged here: what a field holds goes into the entry as it was typed, and the validated writer says
what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

CRON = "cron"
_LONGEST_NUMBER = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field: its name in the form, the key in `on` or `run`, its label, what is allowed in short.

    `kind` is how it is typed: text, lines, number or flag. `problem` says what is wrong with its value.
    `is_needed`: no entry without it.
    """

    name: str
    part: str
    key: str
    label: str
    help: str
    kind: str = "text"
    is_needed: bool = False
    value: str = ""
    problem: str = ""

    @property
    def is_set(self) -> bool:
        """Whether a flag is on."""
        return self.value == "on"


FIELDS = (
    FormField(
        name="id",
        part="on",
        key="id",
        label="Id",
        help="Letters, digits, dots, hyphens and underscores; job ids and log lines have it.",
        is_needed=True,
    ),
    FormField(
        name="pattern",
        part="on",
        key="pattern",
        label="When",
        help="Minute, hour, day of month, month, day of week: 30 2 * * 1-5. Or a name such as @daily.",
        is_needed=True,
    ),
    FormField(
        name="tz",
        part="on",
        key="tz",
        label="Time zone",
        help="An IANA zone such as Europe/London. Blank: the host's own.",
    ),
    FormField(
        name="folder",
        part="run",
        key="folder",
        label="Folder",
        help="The absolute path of a git working tree on the host, which the agent edits in place.",
        is_needed=True,
    ),
    FormField(
        name="flow",
        part="run",
        key="flow",
        label="Flow",
        help="The skill of the repository to use. Needed, as is a task, unless there is a command.",
    ),
    FormField(
        name="task",
        part="run",
        key="task",
        label="Task",
        help="What the agent is to do. Needed unless there is a command.",
        kind="lines",
    ),
    FormField(
        name="command",
        part="run",
        key="command",
        label="Command",
        help="A slash command with its arguments, without the slash; instead of flow and task.",
    ),
    FormField(
        name="provider",
        part="run",
        key="provider",
        label="Provider",
        help="Blank: the one of the host's settings.",
    ),
    FormField(
        name="model", part="run", key="model", label="Model", help="Blank: the one of the host's settings."
    ),
    FormField(
        name="max_turns",
        part="run",
        key="maxTurns",
        label="Most turns",
        help="A whole number from 1. Blank: as the host's settings say.",
        kind="number",
    ),
    FormField(
        name="github",
        part="run",
        key="github",
        label="Give its jobs a token for GitHub",
        help="Unticked, they get none. Ticked, they are refused (not-available): this version has no tokens.",
        kind="flag",
    ),
)


def has_form(entry: Any) -> bool:
    """Tell whether an entry can be shown in the form without losing anything of the fields it has."""
    if not (
        isinstance(entry, dict) and isinstance(entry.get("on"), dict) and isinstance(entry.get("run"), dict)
    ):
        return False
    return entry["on"].get("type") == CRON and all(
        _is_of_kind(field, entry[field.part][field.key]) for field in FIELDS if field.key in entry[field.part]
    )


def of_entry(entry: Any) -> tuple[FormField, ...]:
    """Fill the form from an entry that has one; None makes an empty form."""
    if entry is None:
        return FIELDS
    return tuple(replace(field, value=_text(entry[field.part].get(field.key))) for field in FIELDS)


def of_texts(texts: Mapping[str, str]) -> tuple[FormField, ...]:
    """Fill the form with what a person typed, by the fields' names."""
    return tuple(replace(field, value=_typed(field, texts.get(field.name, ""))) for field in FIELDS)


def entry_of(form: tuple[FormField, ...], before: Any = None) -> dict[str, Any]:
    """Make the entry: what the form has no field for stays as it was; what is blank is not in it."""
    parts = {"on": {"type": CRON}, "run": {"kind": "local"}} if before is None else before
    made = {**parts, "on": dict(parts["on"]), "run": dict(parts["run"])}
    for field in form:
        part = made[field.part]
        value = _value(field, part)
        if value is None:
            part.pop(field.key, None)
        else:
            part[field.key] = value
    return made


def _value(field: FormField, part: Mapping[str, Any]) -> Any:
    if field.kind == "flag":
        # Somebody who wrote false meant to say so.
        return True if field.is_set else (False if part.get(field.key) is False else None)
    if field.kind == "number" and field.value.isascii() and field.value.isdigit():
        return int(field.value) if len(field.value) <= _LONGEST_NUMBER else field.value
    return field.value or None


def _typed(field: FormField, text: str) -> str:
    # A browser ends lines in its own way.
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines if field.kind == "lines" else lines.strip()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else ""
    return "" if value is None else str(value)


def _is_of_kind(field: FormField, value: Any) -> bool:
    if field.kind == "flag":
        return isinstance(value, bool)
    if field.kind == "number":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str)


def with_problems(
    form: tuple[FormField, ...], problems: tuple[str, ...]
) -> tuple[tuple[FormField, ...], tuple[str, ...]]:
    """Put what is wrong with the entry beside the fields that it is about; answers also the rest of it."""
    told = {field.name: found for field in form if (found := _about(field, problems))}
    rest = tuple(one for one in problems if not any(one in found for found in told.values()))
    fields = tuple(
        replace(
            field, problem=" ".join(f"It {_place(field).sub('', one)}." for one in told.get(field.name, ()))
        )
        for field in form
    )
    return fields, rest


def _about(field: FormField, problems: tuple[str, ...]) -> list[str]:
    return [one for one in problems if _place(field).match(one)]


def _place(field: FormField) -> re.Pattern[str]:
    return re.compile(rf".*?: trigger at index [0-9]+(?: \([^)]*\))?: {field.part}\.{field.key} ", re.DOTALL)
