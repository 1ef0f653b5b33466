"""The rows of a file of pause windows or scoped limits, each with what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dispatch.console.rules import Cell, Rule, Rules
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.strict_json import unknown_in

#: What is wrong, by the keys of a row; under the blank one what is about the row as a whole.
Problems = Mapping[str, Sequence[str]]
#: As many are laid out on one page.
MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class Judged:
    """The rules of a document, None where it does not load; then what is wrong with it and with each row."""

    rules: tuple[Rule, ...] | None
    problems: tuple[str, ...] = ()
    of_rows: Mapping[int, Problems] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRow:
    """A row as a page lists it; `problem` says what is wrong with it, then it may have no cells."""

    index: int
    scope: str
    cells: tuple[Cell, ...]
    problem: str = ""
    notes: tuple[str, ...] = ()


def rows_of(document: Any, rules: Rules) -> list[Any]:
    """Give the rows as they stand; none where the document holds no list of them."""
    rows = document.get(rules.part) if isinstance(document, dict) else None
    return rows if isinstance(rows, list) else []


def judged(content: bytes, rules: Rules) -> Judged:
    """Parse the content; what is wrong with a row is told apart from the rest."""
    name = rules.followed.what
    try:
        return Judged(tuple(rules.parse(content, name=name)))
    except OperatorFileError as error:
        return apart(error.problems, rules, name=name)


def apart(problems: Sequence[str], rules: Rules, *, name: str) -> Judged:
    """Sort what the parser says of the file of this name by its rows."""
    rest: list[str] = []
    of_rows: dict[int, dict[str, list[str]]] = {}
    for problem in (one.removeprefix(f"{name}: ") for one in problems):
        place, _, said = problem.partition(" ")
        found = _row_place(place, rules.part)
        if found is None:
            rest.append(problem)
        else:
            of_rows.setdefault(found[0], {}).setdefault(found[1], []).append(said)
    return Judged(None, tuple(rest), of_rows)


def unknown_of(row: Any, rules: Rules) -> tuple[str, ...]:
    """Say which keys of a row mean nothing."""
    found = unknown_in([("", row, rules.keys)]) if isinstance(row, dict) else ()
    return tuple(f"{place.removeprefix('.')} means nothing: a typing error?" for place in found)


def listed(
    rows: Sequence[Any], found: Judged, rules: Rules, *, search: str, now: datetime
) -> tuple[ListedRow, ...]:
    """Lay out the rows whose scope has the text in it."""
    return tuple(
        _listed(index, row, found, rules, now)
        for index, row in enumerate(rows)
        if search.casefold() in scope_of(row).casefold()
    )


def scope_of(row: Any) -> str:
    """Name what a row is about; blank where it does not say so."""
    scope = row.get("scope") if isinstance(row, dict) else None
    return scope if isinstance(scope, str) else ""


def _listed(index: int, row: Any, found: Judged, rules: Rules, now: datetime) -> ListedRow:
    problems = found.of_rows.get(index, {})
    said = "; ".join(f"{key} {text}".strip() for key, texts in problems.items() for text in texts)
    rule = found.rules[index] if found.rules is not None else None
    return ListedRow(
        index=index,
        scope=scope_of(row),
        cells=rules.cells(rule, now) if rule is not None else (),
        problem=said,
        notes=unknown_of(row, rules),
    )


def _row_place(place: str, part: str) -> tuple[int, str] | None:
    """Read `windows[3].days[1]` as its row and key."""
    begin, bracket, rest = place.partition("[")
    number, _, key = rest.partition("]")
    if begin != part or not bracket or not number.isdecimal():
        return None
    return int(number), key.removeprefix(".").partition("[")[0]
