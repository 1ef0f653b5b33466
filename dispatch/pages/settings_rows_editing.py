"""One change of the pause windows or scoped limits from the browser: shown first, then written as shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from dispatch.console.rules import Problems, Rule, Rules, apart, rows_of, scope_of, unknown_of
from dispatch.console.settings import ALONE
from dispatch.console.trigger_changes import Kind, difference
from dispatch.operator_files import strict_json
from dispatch.operator_files.pause_windows import EVERY_SCOPE
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.rewriting import Rewriter, Written
from dispatch.operator_files.scopes import is_reachable
from dispatch.pages.change import lock_of, require_same
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError

# Another edit takes milliseconds; a person tries again.
_LOCK_SECONDS = 2.0
_LAYOUT = "The rest of the file means the same and will be written anew, indented by two spaces."
_ELSEWHERE = "Nothing was changed: this is wrong elsewhere in the file as it would be."
_STILL_WRONG = "Nothing was changed: the file does not load, nor would it without that. Mend it by hand."
_SAME = "Nothing to change: it is like that already."


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
        rows = _listed(document, self.rules)
        self.place = len(rows) if self.index is None else self.index
        self.before = None if self.index is None else _at(rows, self.index, self.rules)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsEditor:
    """The file of this host, as somebody edits it.

    Errors are ConfigurationError, with everything that is wrong, or OperationalError: nothing was changed.
    """

    rules: Rules
    path: Path
    in_fleet: bool

    @property
    def rewriter(self) -> Rewriter:
        """Reads and writes this kind of file."""
        return Rewriter(parse=self.rules.parse, empty=self.rules.empty)

    def row(self, index: int) -> tuple[Any, str]:
        """Find a row by its place, with the lock of the file that it stands in."""
        document = self.rewriter.document(self.path)
        return _at(_listed(document, self.rules), index, self.rules), lock_of(document)

    def lock(self) -> str:
        """Digest the file as it is now."""
        return lock_of(self.rewriter.document(self.path))

    def shown(self, asked: RowChange) -> Written:
        """Tell what the file would hold; writes nothing."""
        with self._blaming(asked):
            return self.rewriter.preview(self.path, asked.change)

    def written(self, asked: RowChange) -> Written:
        """Write it."""
        with self._blaming(asked):
            return self.rewriter.rewrite(self.path, asked.change, lock_seconds=_LOCK_SECONDS)

    def difference(self, asked: RowChange, written: Written) -> tuple[str, tuple[str, ...]]:
        """Write the file before and after, blank where it stays the same; and sentences on its layout."""
        if not asked.is_other or written.after is None:
            return "", ()
        text = difference(written.before, written.after, name=str(self.path))
        # A blank line of the file has a sign before it.
        lines, _, layout = text.partition("\n\n")
        return lines, (_LAYOUT,) if layout else ()

    def said(self, asked: RowChange, written: Written) -> Iterator[str]:
        """Say what will be done, and whom it affects."""
        if not asked.is_other:
            yield _SAME
            return
        about = ", for every job," if asked.scope == EVERY_SCOPE else f", for {asked.scope!a},"
        yield f"{_sentence(asked.name)}{about} will be {asked.kind.value}."
        yield self.rules.counts_when
        if written.before is None:
            yield f"There is no file yet; it will be made: {self.path}"
        if self.in_fleet:
            yield ALONE

    def done(self, asked: RowChange) -> Iterator[str]:
        """Say what was done."""
        yield f"{_sentence(asked.name)} was {asked.kind.value}. {self.rules.counts_when}"
        if self.in_fleet:
            yield ALONE

    def notes(self, asked: RowChange, written: Written, now: datetime) -> Iterator[str]:
        """Say what may not be meant, or what the change does at once."""
        if asked.kind is Kind.REMOVED or not asked.is_other or written.after is None:
            return
        yield from unknown_of(asked.row, self.rules)
        rule: Rule = self.rules.parse(written.after, name=str(self.path))[asked.place]
        if not is_reachable(rule.scope):
            yield (
                f"No job of this host has the scope {rule.scope!a}: write the path that `realpath` shows of a"
                " folder that is here, or a repository in full. Leave it where another host has it."
            )
        yield from self.rules.notes(rule, now)

    def apart(self, error: OperatorFileError, place: int | None) -> tuple[Problems, tuple[str, ...]]:
        """Sort what is wrong: of the row at this place by its keys, and the rest as sentences."""
        found = apart(error.problems, self.rules, name=str(self.path))
        of_row = {} if place is None else found.of_rows.get(place, {})
        others = [
            f"{self.rules.part}[{index}]{f'.{key}' if key else ''} {text}"
            for index, keys in found.of_rows.items()
            if index != place
            for key, texts in keys.items()
            for text in texts
        ]
        rest = (*found.problems, *others)
        return of_row, (_ELSEWHERE, *rest) if rest else ()

    @contextmanager
    def _blaming(self, asked: RowChange) -> Iterator[None]:
        """Name what a removal leaves wrong by its place in the file as it is."""
        try:
            yield
        except OperatorFileError as error:
            if asked.kind is not Kind.REMOVED:
                raise
            raise ConfigurationError(_STILL_WRONG, *self._problems()) from error

    def _problems(self) -> tuple[str, ...]:
        try:
            self.rules.parse(self.rewriter.content(self.path) or b"", name=str(self.path))
        except OperatorFileError as error:
            return error.problems
        return ()


def editor_of(rules: Rules, environment: Mapping[str, str]) -> RowsEditor:
    """Find the file to edit; ConfigurationError where none is named."""
    path = conf.one(rules.followed.variable, environment)
    if path is None:
        raise ConfigurationError(no_file(rules))
    return RowsEditor(rules=rules, path=path, in_fleet=conf.one("PI_WORKER_NAME", environment) is not None)


def no_file(rules: Rules) -> str:
    """Say that this site is told of no such file."""
    return (
        f"{rules.followed.variable} is not set for this site, so there is no file of {rules.followed.what} to"
        " edit. Set it to the path of the file that the worker of this host reads, in the environment or the"
        " .env file of both, and restart both."
    )


def row_of_json(text: str) -> dict[str, Any]:
    """Read a row as it was typed; ConfigurationError for what is none."""
    row = strict_json.load(text.encode("utf-8", "surrogatepass"), name="The row")
    if not isinstance(row, dict):
        raise ConfigurationError("The row is no object; allowed is {…}, as in the file.")
    return row


def _listed(document: Any, rules: Rules) -> list[Any]:
    if not (isinstance(document, dict) and isinstance(document.get(rules.part), list)):
        raise ConfigurationError(f"The file holds no list of {rules.part}; mend it by hand.")
    return list(rows_of(document, rules))


def _at(rows: list[Any], index: int, rules: Rules) -> Any:
    if index >= len(rows):
        raise ConfigurationError(f"There is no {rules.part}[{index}] in the file; look at the list again.")
    return rows[index]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _plain(row: Any) -> str:
    return json.dumps(row, sort_keys=True)
