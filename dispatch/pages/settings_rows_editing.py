"""The file of pause windows or scoped limits of this host, as somebody edits it in the browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatch.console.rule_listing import Problems, apart
from dispatch.console.rules import Rules
from dispatch.console.trigger_changes import Kind, difference
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.rewriting import Rewriter, Written
from dispatch.pages.change import lock_of
from dispatch.pages.settings_files import path_named
from dispatch.pages.settings_row_change import RowChange, list_in, row_at
from pidispatch_site.errors import ConfigurationError

# Another edit takes milliseconds; a person tries again.
_LOCK_SECONDS = 2.0
_LAYOUT = "The rest of the file means the same and will be written anew, indented by two spaces."
_ELSEWHERE = "Nothing was changed: this is wrong elsewhere in the file as it would be."
_STILL_WRONG = "Nothing was changed: the file does not load, nor would it without that. Mend it by hand."


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsEditor:
    """The file of this host, as somebody edits it.

    Errors are ConfigurationError, with everything that is wrong, or OperationalError: nothing was changed.
    """

    rules: Rules
    path: Path

    @property
    def rewriter(self) -> Rewriter:
        """Reads and writes this kind of file."""
        return Rewriter(parse=self.rules.parse, empty=self.rules.empty)

    def row(self, index: int) -> tuple[Any, str]:
        """Find a row by its place, with the lock of the file that it stands in."""
        document = self.rewriter.document(self.path)
        return row_at(list_in(document, self.rules), index, self.rules), lock_of(document)

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
    path = path_named(rules.followed.variable, environment)
    if path is None:
        raise ConfigurationError(no_file(rules))
    return RowsEditor(rules=rules, path=path)


def no_file(rules: Rules) -> str:
    """Say that this site is told of no such file."""
    return (
        f"{rules.followed.variable} is not set for this site, so there is no file of {rules.followed.what} to"
        " edit. Set it to the path of the file that the worker of this host reads, in the environment or the"
        " .env file of both, and restart both."
    )
