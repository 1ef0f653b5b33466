"""What is said of a change of one pause window or scoped limit, before and after it is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from dispatch.console.rule_listing import unknown_of
from dispatch.console.rules import Rule
from dispatch.console.trigger_changes import Kind
from dispatch.operator_files.pause_windows import EVERY_SCOPE
from dispatch.operator_files.rewriting import Written
from dispatch.operator_files.scopes import is_reachable
from dispatch.pages.settings_row_change import RowChange

_SAME = "Nothing to change: it is like that already."


def said(asked: RowChange, written: Written, *, path: Path) -> Iterator[str]:
    """Say what will be done, and whom it affects."""
    if not asked.is_other:
        yield _SAME
        return
    about = ", for every job," if asked.scope == EVERY_SCOPE else f", for {asked.scope!a},"
    yield f"{_sentence(asked.name)}{about} will be {asked.kind.value}."
    yield asked.rules.counts_when
    if written.before is None:
        yield f"There is no file yet; it will be made: {path}"


def done(asked: RowChange) -> Iterator[str]:
    """Say what was done."""
    yield f"{_sentence(asked.name)} was {asked.kind.value}. {asked.rules.counts_when}"


def notes(asked: RowChange, written: Written, now: datetime) -> Iterator[str]:
    """Say what may not be meant, or what the change does at once."""
    if asked.kind is Kind.REMOVED or not asked.is_other or written.after is None:
        return
    yield from unknown_of(asked.row, asked.rules)
    rule: Rule = asked.rules.parse(written.after, name="")[asked.place]
    if not is_reachable(rule.scope):
        yield (
            f"No job of this host has the scope {rule.scope!a}: write the path that `realpath` shows of a"
            " folder that is here, or a repository in full. Leave it where another host has it."
        )
    yield from asked.rules.notes(rule, now)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
