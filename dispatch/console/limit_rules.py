"""Scoped limits as the console lists and edits them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from dispatch.console.adoption import LIMITS
from dispatch.console.counts import number_of
from dispatch.console.rule_fields import FieldKind, RuleField
from dispatch.console.rules import Cell, Rule, Rules
from dispatch.operator_files import scoped_limits
from dispatch.operator_files.scoped_limits import VERSION, ScopedLimit

_NO_LIMIT = "—"
_BLANK = "A whole number from 1. Blank: no limit."
_STARTS = (("day", "Starts a day"), ("week", "Starts a week"), ("month", "Starts a month"))
_AT_ONCE = ("concurrent", "At once")
_COLUMNS = (*_STARTS, _AT_ONCE)

FIELDS = (
    RuleField(
        name="scope",
        label="Scope",
        help="A repository as its forge writes it, or a folder by its real path.",
    ),
    *(RuleField(name=key, label=heading, help=_BLANK, kind=FieldKind.NUMBER) for key, heading in _STARTS),
    RuleField(
        name="concurrent",
        label="Containers at once",
        help="Of one repository; in a folder there is never more than one. Blank: no limit.",
        kind=FieldKind.NUMBER,
    ),
)


def _cells(rule: Rule, now: datetime) -> tuple[Cell, ...]:
    limit = _limit(rule)
    values = ((heading, getattr(limit, key)) for key, heading in _COLUMNS)
    return tuple(Cell(heading, _NO_LIMIT if value is None else str(value)) for heading, value in values)


def _notes(rule: Rule, now: datetime) -> Iterator[str]:
    limit = _limit(rule)
    if limit.concurrent is not None and limit.scope.startswith("/"):
        yield "One job at a time works in a folder anyway: concurrent changes nothing there."


def _counted(rules: Sequence[Rule], now: datetime) -> str:
    return number_of(len(rules), "scoped limit", "scoped limits") if rules else "no scoped limit"


def _worded(text: str) -> str:
    """Name the fields by their labels."""
    labels = {field.name: f"“{field.label}”" for field in FIELDS}
    for key in scoped_limits.LIMITS:
        text = text.replace(f"or no {key} at all for no limit", "or blank for no limit")
    return text.replace(
        ", ".join(scoped_limits.LIMITS), ", ".join(labels[key] for key in scoped_limits.LIMITS)
    )


def _limit(rule: Rule) -> ScopedLimit:
    if not isinstance(rule, ScopedLimit):
        raise TypeError("these are the rules of scoped limits")
    return rule


def _parse(content: bytes, *, name: str) -> Sequence[ScopedLimit]:
    return scoped_limits.parse(content, name=name).rows


LIMIT_RULES = Rules(
    slug="limit",
    noun="scoped limit",
    part="limits",
    followed=LIMITS,
    empty={"version": VERSION, "limits": []},
    keys=scoped_limits.KEYS,
    parse=_parse,
    fields=FIELDS,
    example={"scope": "owner/repository", "day": 5},
    headings=tuple(heading for _, heading in _COLUMNS),
    cells=_cells,
    notes=_notes,
    counted=_counted,
    worded=_worded,
    counts_when=(
        "Running workers of this host follow the file within seconds: what starts next is judged by it. Jobs"
        " that run go on; starts that were counted stay counted."
    ),
)
