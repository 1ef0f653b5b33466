"""`triggers.json`: the whole file is judged, every problem of it at once, each with its entry (Q 5.1).

Worker and receiver read the same file and each uses its own types, so that a bad file fails both alike.
Nothing is asked of the host: whether a folder exists is the worker's question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dispatch.ids import Kind
from dispatch.operator_files import strict_json
from dispatch.operator_files.problems import OperatorFileError, Problem, shown
from dispatch.triggers import on_fields, run_fields
from dispatch.triggers.entries import DISARMED, TYPES, Trigger, Triggers
from dispatch.triggers.field_values import text
from dispatch.triggers.forges import FORGES, WITH_ISSUES, WORDS
from dispatch.triggers.given import Given
from dispatch.waits import conditions

PART = "triggers"
# A list of something else, given by mistake, would be judged for a long time.
MOST_ENTRIES = 10_000

_ID_CHARACTERS = 80
_FILE = 'an object such as {"triggers": []}'
_ENTRY = 'an object such as {"on": {"type": "cron", ...}, "run": {"kind": "local", ...}}'
_ONCE = {
    "on.id": "an id of its own for each schedule",
    "run.kind": "one rule about comments for each forge",
}
_TYPES = f"one of {', '.join(TYPES)}"


def parse(content: bytes, *, name: str) -> Triggers:
    """Read the content of the file of this name; OperatorFileError with everything that is wrong with it."""
    return of_document(strict_json.load(content, name=name), name=name)


def of_document(document: object, *, name: str) -> Triggers:
    """Read what the file's JSON holds, as `parse` does."""
    problems: list[Problem] = []
    rows = _rows(document, problems)
    entries = [_entry(index, row, problems) for index, row in enumerate(rows)]
    _check_repeats(rows, problems)
    if problems:
        raise OperatorFileError(name, problems)
    return Triggers(tuple(entry for entry in entries if entry))


def place_of(index: int, row: object) -> str:
    """Name an entry for a person and a log line: `trigger at index 3 (cron trigger "nightly")`."""
    on = _object(row, "on")
    id_ = on.get("id")
    is_known = on.get("type") == "cron" and on_fields.is_id(id_)
    known = f' (cron trigger "{str(id_)[:_ID_CHARACTERS]}")' if is_known else ""
    return f"trigger at index {index}{known}"


def _rows(document: object, problems: list[Problem]) -> Sequence[Any]:
    if not isinstance(document, dict):
        problems.append(Problem("", f"holds {_kind_of(document)}; allowed is {_FILE}"))
    elif PART not in document:
        problems.append(Problem(PART, 'is missing; add "triggers": [], with an object for each in it'))
    elif not isinstance(document[PART], list):
        problems.append(Problem(PART, f"is {_kind_of(document[PART])}; allowed is a list of objects"))
    elif len(document[PART]) > MOST_ENTRIES:
        problems.append(Problem(PART, f"has {len(document[PART])} entries; allowed are {MOST_ENTRIES}"))
    else:
        rows: Sequence[Any] = document[PART]
        return rows
    return ()


def _object(row: object, part: str) -> Mapping[str, Any]:
    """Give the part of an entry that is an object; an empty one for whatever else is there."""
    found = row.get(part) if isinstance(row, dict) else None
    return found if isinstance(found, dict) else {}


def _entry(index: int, row: object, problems: list[Problem]) -> Trigger | None:
    """Read one entry; None when a part of it is not there at all."""
    place = place_of(index, row)
    if not isinstance(row, dict):
        problems.append(Problem(place, f"is {_kind_of(row)}; allowed is {_ENTRY}"))
        return None
    on = _part(row, "on", place, problems)
    run = _part(row, "run", place, problems)
    problems += conditions.problems_of_trigger(
        on.row if on else {}, run.row if run else {}, place=f"{place}: "
    )
    type_ = _type(on) if on else None
    kind = _kind(run, type_) if run else None
    if on and run and on.row.get("once") is True and run.has("replicas"):
        on.wrong("once", "stands beside run.replicas; allowed is one of the two")
    starts = on_fields.read(type_, on, WORDS.get(kind) if kind else None) if on and type_ else None
    is_schedule = type_ == "cron" if type_ else kind is Kind.LOCAL
    runs = run_fields.read(run, kind=kind, type_=type_, is_schedule=is_schedule) if run else None
    return Trigger(index=index, on=starts, run=runs) if starts and runs else None


def _part(row: Mapping[str, Any], part: str, place: str, problems: list[Problem]) -> Given | None:
    if isinstance(row.get(part), dict):
        return Given(row[part], f"{place}: {part}", problems)
    found = f"is {_kind_of(row[part])}" if part in row else "is missing"
    problems.append(Problem(f"{place}: {part}", f"{found}; allowed is {_ENTRY}"))
    return None


def _kind_of(value: object) -> str:
    """Show what stands in the place of a whole part; what is in it is not shown: it may be a secret."""
    match value:
        case dict():
            return "an object"
        case list():
            return f"a list of {len(value)}"
        case _:
            return shown(value)


def _type(on: Given) -> str | None:
    if on.row.get("type") == DISARMED:
        on.wrong("type", f"is 'disarmed', and what is spent keeps its type; allowed is {_TYPES}")
        return None
    return on.needed("type", _TYPES, text(lambda value: value in TYPES))


def _kind(run: Given, type_: str | None) -> Kind | None:
    """Read the kind, which has to be one that tells of what the entry waits for."""
    kinds = _kinds(type_)
    allowed = ("" if len(kinds) == 1 else "one of ") + ", ".join(kinds)
    allowed += f" where on.type is {type_}" if type_ else ""
    return run.needed("kind", allowed, lambda value: Kind(value) if value in list(kinds) else None)


def _kinds(type_: str | None) -> Sequence[Kind]:
    if type_ is None:
        return tuple(Kind)
    if type_ == "cron":
        return (Kind.LOCAL,)
    return WITH_ISSUES if type_ == "issue" else FORGES


def _check_repeats(rows: Sequence[Any], problems: list[Problem]) -> None:
    """Note which schedules share an id, and which rules about comments a forge."""
    first: dict[tuple[str, str], int] = {}
    for index, row in enumerate(rows):
        found = _only_once(row)
        if found is None:
            continue
        field, value = found
        before = first.setdefault(found, index)
        if before != index:
            said = f"is {shown(value)}, as that of the trigger at index {before}; allowed is {_ONCE[field]}"
            problems.append(Problem(f"{place_of(index, row)}: {field}", said))


def _only_once(row: object) -> tuple[str, str] | None:
    """Give the field of an entry that no second one may have with this value, and the value."""
    on, kind = _object(row, "on"), _object(row, "run").get("kind")
    match on.get("type"):
        case "cron" if on_fields.is_id(on.get("id")):
            return "on.id", str(on["id"])
        case "comment" if isinstance(kind, str):
            return "run.kind", kind
        case _:
            return None
