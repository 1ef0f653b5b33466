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
from dispatch.triggers.forges import FORGES, WITH_ISSUES, WORDS
from dispatch.triggers.given import Given, text
from dispatch.waits import conditions

PART = "triggers"

_ID_CHARACTERS = 80
_FILE = 'an object such as {"triggers": []}'
_ONCE = {
    "on.id": "an id of its own for each schedule",
    "run.kind": "one rule about comments for each forge",
}
_ENTRY = 'an object such as {"on": {"type": "cron", ...}, "run": {"kind": "local", ...}}'


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
    on = row.get("on") if isinstance(row, dict) else None
    id_ = on.get("id") if isinstance(on, dict) and on.get("type") == "cron" else None
    known = f' (cron trigger "{str(id_)[:_ID_CHARACTERS]}")' if on_fields.is_id(id_) else ""
    return f"trigger at index {index}{known}"


def _rows(document: object, problems: list[Problem]) -> Sequence[Any]:
    if not isinstance(document, dict):
        problems.append(Problem("", f"holds {shown(document)}; allowed is {_FILE}"))
    elif PART not in document:
        problems.append(Problem(PART, 'is missing; add "triggers": [], with an object for each in it'))
    elif not isinstance(document[PART], list):
        problems.append(Problem(PART, f"is {shown(document[PART])}; allowed is a list of objects"))
    else:
        rows: Sequence[Any] = document[PART]
        return rows
    return ()


def _entry(index: int, row: Any, problems: list[Problem]) -> Trigger | None:
    """Read one entry; None when something is wrong with it."""
    place = place_of(index, row)
    if not isinstance(row, dict):
        problems.append(Problem(place, f"is {shown(row)}; allowed is {_ENTRY}"))
        return None
    parts = [_part(row, part, place, problems) for part in ("on", "run")]
    on_part, run_part = parts
    if on_part is None or run_part is None:
        return None
    problems += conditions.problems_of_trigger(on_part.row, run_part.row, place=f"{place}: ")
    type_ = _type(on_part)
    if type_ is None:
        return None
    kind = _kind(run_part, type_)
    on = on_fields.read(type_, on_part, WORDS.get(kind) if kind else None)
    _check_once(on_part, run_part)
    run = run_fields.read(run_part, kind=kind, on_type=type_)
    return Trigger(index=index, on=on, run=run) if on and run else None


def _part(row: Mapping[str, Any], part: str, place: str, problems: list[Problem]) -> Given | None:
    if isinstance(row.get(part), dict):
        return Given(row[part], f"{place}: {part}", problems)
    found = f"is {shown(row[part])}" if part in row else "is missing"
    problems.append(Problem(f"{place}: {part}", f"{found}; allowed is {_ENTRY}"))
    return None


def _type(on: Given) -> str | None:
    allowed = ", ".join(TYPES)
    if on.row.get("type") == DISARMED:
        on.wrong("type", f"is 'disarmed', which no file says; a spent one-shot keeps its type ({allowed})")
        return None
    return on.needed("type", allowed, text(lambda value: value in TYPES))


def _kind(run: Given, type_: str) -> Kind | None:
    """Read the kind, which has to be one that can tell of what the entry waits for."""
    if type_ == "cron":
        kinds: Sequence[Kind] = (Kind.LOCAL,)
    else:
        kinds = WITH_ISSUES if type_ == "issue" else FORGES
    allowed = ", ".join(kind.value for kind in kinds)
    return run.needed(
        "kind", f"{allowed} for {type_}", lambda value: Kind(value) if value in list(kinds) else None
    )


def _check_once(on: Given, run: Given) -> None:
    if on.row.get("once") is True and run.has("replicas"):
        on.wrong("once", "stands beside run.replicas; allowed is one of the two")


def _check_repeats(rows: Sequence[Any], problems: list[Problem]) -> None:
    """Note which schedules share an id, and which rules about comments a forge."""
    first: dict[tuple[str, str], int] = {}
    for index, row in enumerate(rows):
        found = _only_once(row)
        if not found:
            continue
        field, value = found
        before = first.setdefault(found, index)
        if before != index:
            text_ = f"is {shown(value)}, as that of the trigger at index {before}; allowed is {_ONCE[field]}"
            problems.append(Problem(f"{place_of(index, row)}: {field}", text_))


def _only_once(row: Any) -> tuple[str, str] | None:
    """Give what no second entry may have: its field and its value."""
    if (
        not isinstance(row, dict)
        or not isinstance(row.get("on"), dict)
        or not isinstance(row.get("run"), dict)
    ):
        return None
    on, kind = row["on"], row["run"].get("kind")
    if on.get("type") == "cron" and on_fields.is_id(on.get("id")):
        return "on.id", on["id"]
    if on.get("type") == "comment" and isinstance(kind, str):
        return "run.kind", kind
    return None
