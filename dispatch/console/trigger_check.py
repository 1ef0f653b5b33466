"""A triggers file judged as the worker judges it, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatch.triggers.entries import Disarmed, Trigger, Triggers, wire
from dispatch.triggers.parse import parse
from dispatch.triggers.unknown import unknown_keys

_SPENT = "spent one-shot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A file that loads: how many entries of which type it has, and which of its keys mean nothing."""

    name: str
    counts: Mapping[str, int]
    unknown: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in sentences."""
        total = sum(self.counts.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        lines = [f"{self.name}: no problems; {total} {'entry' if total == 1 else 'entries'}"]
        lines[0] += f" ({kinds})." if kinds else "."
        lines += [f"{key} means nothing: no trigger has such a key." for key in self.unknown]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Make what `--json` prints."""
        return {"file": self.name, "entries": dict(self.counts), "unknown": self.unknown}


def check(content: bytes, *, name: str) -> Checked:
    """Judge the content of the file of this name; OperatorFileError with everything that is wrong with it."""
    triggers: Triggers = parse(content, name=name)
    counts = Counter(_kind(entry) for entry in triggers.entries)
    return Checked(name=name, counts=counts, unknown=unknown_keys(content))


def _kind(entry: Trigger) -> str:
    return _SPENT if isinstance(entry.on, Disarmed) else str(wire(entry)["on"]["type"])
