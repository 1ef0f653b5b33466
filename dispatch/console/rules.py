"""What the pages of pause windows and scoped limits have in common: a file that holds a list of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from dispatch.console.adoption import Followed
from dispatch.console.rule_fields import Fields
from dispatch.operator_files.pause_windows import PauseWindow
from dispatch.operator_files.scoped_limits import ScopedLimit

Rule = PauseWindow | ScopedLimit


class _Parse(Protocol):
    def __call__(self, content: bytes, *, name: str) -> Sequence[Rule]: ...


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands of a row under one heading; `tone` is a colour's token, blank for none."""

    heading: str
    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A kind of file that holds rows.

    `slug` names a row in addresses and in the log of actions, `noun` for a person. `part` is the key of the
    list, `empty` what a new file holds, `keys` those of a row that mean something. `headings` and `cells` lay
    a row out behind its scope, `notes` says what a person may not have meant or should know before it counts,
    `counted` what there is without any scope, `counts_when` when a change of the file counts. `worded` puts
    what the parser says of a row into words for whoever has the form, not the file, before him.
    """

    slug: str
    noun: str
    part: str
    followed: Followed
    empty: Mapping[str, Any]
    keys: Collection[str]
    parse: _Parse
    fields: Fields
    example: Mapping[str, Any]
    headings: tuple[str, ...]
    cells: Callable[[Rule, datetime], tuple[Cell, ...]]
    notes: Callable[[Rule, datetime], Iterator[str]]
    counted: Callable[[Sequence[Rule], datetime], str]
    counts_when: str
    worded: Callable[[str], str] = str
