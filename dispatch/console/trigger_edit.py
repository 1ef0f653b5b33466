"""One change of the triggers file carried out, or shown, or refused with who is to blame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dispatch.console import trigger_places
from dispatch.console.trigger_changes import Asked, Kind
from dispatch.console.trigger_places import Machine, Places
from dispatch.operator_files.problems import OperatorFileError
from dispatch.triggers import writing
from dispatch.triggers.entries import Triggers
from dispatch.triggers.parse import of_document
from dispatch.triggers.unknown import explained_of
from dispatch.triggers.writing import Written
from pidispatch_site.errors import ConfigurationError

_NOT_CHANGED = "Nothing was changed: this is what is wrong with the file as it would be."
_AS_IT_STANDS = (
    "Nothing was changed, and nothing was tried: the file as it stands has these problems. Mend them first."
)
_AS_WELL = "The file as it stands has problems, too. Mend them first:"
_WOULD_REFUSE = "A worker of a single host refuses the file for that, and does not start with it."


@dataclass(frozen=True, slots=True)
class Edited:
    """What the file holds then, and sentences on what a person may not have meant."""

    written: Written
    notes: tuple[str, ...]


def carry_out(asked: Asked, path: Path, this: Machine, *, is_written: bool, create: bool) -> Edited:
    """Make the change in the file at this path, or with `is_written` False tell what it would be.

    `create` makes a file where there is none. ConfigurationError with what is wrong, OperationalError for
    what may work later; nothing was changed then.
    """
    if not create and not _is_there(path):
        raise ConfigurationError(_no_file(path, asked))
    found: list[Places] = []

    def judge(triggers: Triggers) -> None:
        found[:] = [trigger_places.look(triggers, this)]
        problems = () if asked.kind is Kind.REMOVED else found[0].problems(of=asked.index)
        if problems:
            raise OperatorFileError(str(path), problems)

    work = writing.rewrite if is_written else writing.preview
    try:
        written = work(path, asked.change, judge=judge, create_missing=create)
    except OperatorFileError as error:
        raise ConfigurationError(*_blamed(asked, path, error)) from error
    return Edited(written, tuple(_notes(asked, found[0])) if found else ())


def _notes(asked: Asked, places: Places) -> Iterator[str]:
    if asked.kind is not Kind.REMOVED and asked.entry is not None:
        yield from explained_of([asked.entry], first=asked.index)
        yield from places.notes(of=asked.index)
    # Its own were refused.
    if others := places.problems():
        yield from (f"{one.place} {one.text}." for one in others)
        yield _WOULD_REFUSE


def _blamed(asked: Asked, path: Path, error: OperatorFileError) -> Iterator[str]:
    """Tell what the change brings from what was wrong before it."""
    standing = _standing(path)
    of_entry = re.compile(rf": trigger at index {asked.index}(?![0-9])")
    brought = [
        one
        for one in error.problems
        if asked.is_worked_out
        and asked.kind is not Kind.REMOVED
        and (one not in standing or of_entry.search(one))
    ]
    rest = [one for one in error.problems if one not in brought]
    if brought:
        yield from (_NOT_CHANGED, *brought)
    if rest:
        yield from (_AS_WELL if brought else _AS_IT_STANDS, *rest)


def _standing(path: Path) -> tuple[str, ...]:
    try:
        of_document(writing.document_of(path), name=str(path))
    except OperatorFileError as error:
        return error.problems
    return ()


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # Reading it will say why not.
        return True


def _no_file(path: Path, asked: Asked) -> str:
    said = f"PI_TRIGGERS_FILE names {path}, which does not exist. Nothing was changed."
    if asked.kind is not Kind.ADDED:
        return f"{said} Correct the path."
    return (
        f"{said} Correct the path; or make the file with --create: workers then have the schedules in it and"
        " no other, so that those from another file are taken away."
    )
