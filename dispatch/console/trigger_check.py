"""A triggers file judged as the worker judges it, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatch.console import trigger_places
from dispatch.console.trigger_places import Machine, Places
from dispatch.operator_files import strict_json
from dispatch.operator_files.problems import OperatorFileError
from dispatch.triggers.entries import Disarmed, Trigger, Triggers, wire
from dispatch.triggers.parse import PART, parse
from dispatch.triggers.unknown import explained_of, unknown_keys

_SPENT = "spent one-shot"
_REFUSED = "A worker of a single host refuses a file with such an entry, and does not start with it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A file that loads: how many entries of which type it has, and which of its keys mean nothing.

    `explained` says of those keys what may be meant. `places`: what of it is not on this machine.
    """

    name: str
    counts: Mapping[str, int]
    unknown: tuple[str, ...]
    explained: tuple[str, ...]
    places: Places

    def __str__(self) -> str:
        """Say it in sentences."""
        total = sum(self.counts.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        lines = [f"{self.name}: loads; {total} {'entry' if total == 1 else 'entries'}"]
        lines[0] += f" ({kinds})." if kinds else "."
        lines += [*self.explained, *self.places.notes()]
        lines += [_REFUSED] if self.places.problems() else []
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Make what `--json` prints."""
        return {
            "file": self.name,
            "entries": dict(self.counts),
            "unknown": self.unknown,
            "relative": self.places.named(relative=True),
            "absent": self.places.named(relative=False),
            "notes": [*self.explained, *self.places.notes()],
        }


def check(content: bytes, *, name: str, this: Machine, own: Path | None = None) -> Checked:
    """Judge the content of the file of this name; OperatorFileError with everything that is wrong with it.

    `own` is the file that the workers of this machine have: of a single host, they refuse it for what is not
    there.
    """
    triggers: Triggers = parse(content, name=name)
    places = trigger_places.look(triggers, this)
    if (problems := places.problems()) and own is not None and _is_same(own, name):
        raise OperatorFileError(name, problems)
    return Checked(
        name=name,
        counts=Counter(_kind(entry) for entry in triggers.entries),
        unknown=unknown_keys(content),
        explained=explained_of(strict_json.of_loaded(content)[PART]),
        places=places,
    )


def _is_same(own: Path, name: str) -> bool:
    try:
        return own.samefile(name)
    except (OSError, ValueError):
        return False


def _kind(entry: Trigger) -> str:
    return _SPENT if isinstance(entry.on, Disarmed) else str(wire(entry)["on"]["type"])
