"""One change of the triggers file as a person asks for it: worked out, shown, and what follows from it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dispatch.operator_files.overlay_edit import rendered
from dispatch.operator_files.strict_json import load
from dispatch.triggers import editing, entry_places
from dispatch.triggers.one_shots import Armed, standing
from dispatch.triggers.parse import PART, place_of
from runs.oneshot import OneShot, one_shot_of_entry

_TAKEN_OVER = "Running workers of this host follow the file within seconds."
_FLEET = (
    "The file is this host's alone: give the other hosts of the fleet the same change. Schedules are taken"
    " over once no live host has another opinion."
)
_MOVED = "The entries behind it moved up by one; records name rules for forges by their place."
_REFORMATTED = "The rest of the file means the same and was written anew, indented by two spaces."


class Kind(StrEnum):
    """What is done to an entry."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(slots=True)
class Asked:
    """A change of one entry; `index`, `before` and `after` are known once it has been worked out.

    `place` is None for an entry that is added, `entry` for one that is removed.
    """

    kind: Kind
    place: str | None
    entry: Any | None
    index: int = 0
    before: Any | None = None
    after: Any | None = None
    is_worked_out: bool = False
    _follow: int = 0

    def change(self, document: Any) -> Any | None:
        """Answer the document with the change, None where it is as asked for already.

        ConfigurationError where the place names no entry.
        """
        if self.place is None:
            changed = editing.add(document, self.entry)
            self.index = len(changed[PART]) - 1
        else:
            self.index = entry_places.find(document, self.place)
            self.before = document[PART][self.index]
            place = f"index:{self.index}"
            if self.kind is Kind.REMOVED:
                changed = editing.remove(document, place)
            else:
                changed = editing.edit(document, place, self.entry)
        self.after = self.entry
        self._follow = len(changed[PART]) - self.index
        self.is_worked_out = True
        return changed if self.is_other else None

    @property
    def is_other(self) -> bool:
        """Whether it changes anything; true and 1 are not the same."""
        is_edit = self.kind is Kind.CHANGED
        return not is_edit or json.dumps(self.before, sort_keys=True) != json.dumps(
            self.after, sort_keys=True
        )

    @property
    def still_armed(self) -> OneShot | None:
        """The one-shot that was armed before as it is now: of that a claim may be left over."""
        once = one_shot_of_entry(self.index, self.after)
        if once is None or not isinstance(_standing(self.index, self.before, once), Armed):
            return None
        return once if isinstance(_standing(self.index, self.after, once), Armed) else None

    @property
    def armed(self) -> OneShot | None:
        """The one-shot that it armed; None for one that was armed before, whose job may be on its way."""
        once = one_shot_of_entry(self.index, self.after)
        if once is None or not isinstance(_standing(self.index, self.after, once), Armed):
            return None
        return None if isinstance(_standing(self.index, self.before, once), Armed) else once

    def said(self, *, is_written: bool, in_fleet: bool) -> str:
        """Say in sentences what was done, or would be, and what a person has to know then."""
        what = place_of(self.index, self.before if self.kind is Kind.REMOVED else self.after)
        if not self.is_other:
            return f"Nothing to change: {what} is like that already."
        if not is_written:
            return f"{what[0].upper()}{what[1:]} would be {self.kind}. Nothing was written (--dry-run)."
        lines = [f"{what[0].upper()}{what[1:]} was {self.kind}. {_TAKEN_OVER}"]
        lines += [_MOVED] if self.kind is Kind.REMOVED and self._follow else []
        lines += [_FLEET] if in_fleet else []
        return "\n".join(lines)

    def as_json(self, *, file: str, is_written: bool, notes: Sequence[str]) -> dict[str, Any]:
        """Make what `--json` prints; `before` and `after` are the entry's."""
        return {
            "file": file,
            "done": self.kind.value,
            "written": is_written and self.is_other,
            "index": self.index,
            "before": self.before,
            "after": self.after,
            "notes": list(notes),
        }


def difference(before: bytes | None, after: bytes, *, name: str) -> str:
    """Write the file before and after as a unified diff of what it means, escaped for a terminal.

    A file that was laid out in another way is compared as it would have been written by us.
    """
    laid_out = b"" if before is None else rendered(load(before, name=name), name=name)
    lines = difflib.unified_diff(
        laid_out.decode().splitlines(), after.decode().splitlines(), "before", "after", lineterm=""
    )
    shown = "\n".join(_printable(line) for line in lines)
    is_reformatted = before is not None and laid_out != before
    return f"{shown}\n\n{_REFORMATTED}" if is_reformatted else shown


def _standing(index: int, entry: Any, once: OneShot) -> object:
    """Judge one entry by itself, at its place."""
    return standing({PART: [None] * index + [entry]}, once)


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
