"""One change of the pause windows or scoped limits, of the file as it was when somebody looked at it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dispatch.console.rule_listing import rows_of, scope_of
from dispatch.console.rules import Rules
from dispatch.console.trigger_changes import Kind
from dispatch.operator_files import strict_json
from dispatch.pages.change import lock_of, require_same
from pidispatch_site.errors import ConfigurationError


@dataclass(slots=True, kw_only=True)
class RowChange:
    """A change of one row of the file as it was when somebody looked; `lock` None: as it is.

    `index` is None for a row that is added, `row` for one that is removed. The rest is known once it has been
    worked out: `seen` digests the file, `place` is the row's.
    """

    rules: Rules
    kind: Kind
    index: int | None
    row: Any
    lock: str | None
    seen: str = ""
    place: int = 0
    before: Any = None

    def change(self, document: Any) -> Any | None:
        """Answer the document with the change, None where it is as asked for already.

        ConfigurationError where there is no such row; ChangedMeanwhileError where the file is another one.
        """
        self.seen = lock_of(document)
        if self.lock is not None:
            require_same(document, self.lock, what=f"file of {self.rules.followed.what}")
        rows = list_in(document, self.rules)
        self.place = len(rows) if self.index is None else self.index
        self.before = None if self.index is None else row_at(rows, self.index, self.rules)
        rows[self.place : self.place + 1] = [] if self.kind is Kind.REMOVED else [self.row]
        return {**document, self.rules.part: rows} if self.is_other else None

    @property
    def is_other(self) -> bool:
        """Whether it changes anything; true and 1 are not the same."""
        return self.kind is not Kind.CHANGED or _plain(self.before) != _plain(self.row)

    @property
    def name(self) -> str:
        """Name the row as the parser's messages do."""
        return f"{self.rules.noun} {self.rules.part}[{self.place}]"

    @property
    def scope(self) -> str:
        """What the row is about, blank where it does not say so."""
        return scope_of(self.before if self.kind is Kind.REMOVED else self.row)


def row_of_json(text: str) -> dict[str, Any]:
    """Read a row as it was typed; ConfigurationError for what is none."""
    row = strict_json.load(text.encode("utf-8", "surrogatepass"), name="The row")
    if not isinstance(row, dict):
        raise ConfigurationError("The row is no object; allowed is {…}, as in the file.")
    return row


def list_in(document: Any, rules: Rules) -> list[Any]:
    """Copy the list of rows; ConfigurationError where the document holds none."""
    if not (isinstance(document, dict) and isinstance(document.get(rules.part), list)):
        raise ConfigurationError(f"The file holds no list of {rules.part}; mend it by hand.")
    return list(rows_of(document, rules))


def row_at(rows: list[Any], index: int, rules: Rules) -> Any:
    """Find the row at this place; ConfigurationError where there is none."""
    if index >= len(rows):
        raise ConfigurationError(f"There is no {rules.part}[{index}] in the file; look at the list again.")
    return rows[index]


def _plain(row: Any) -> str:
    return json.dumps(row, sort_keys=True)
