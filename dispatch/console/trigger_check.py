"""A triggers file judged as the worker judges it, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from dispatch.operator_files.problems import shown
from dispatch.triggers.entries import Disarmed, Trigger, Triggers, wire
from dispatch.triggers.parse import parse, place_of
from dispatch.triggers.unknown import unknown_keys

_SPENT = "spent one-shot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A file that loads: how many entries of which type it has, and which of its keys mean nothing.

    `relative`: the paths of its schedules that no host can find.
    """

    name: str
    counts: Mapping[str, int]
    unknown: tuple[str, ...]
    relative: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in sentences."""
        total = sum(self.counts.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        lines = [f"{self.name}: no problems; {total} {'entry' if total == 1 else 'entries'}"]
        lines[0] += f" ({kinds})." if kinds else "."
        lines += [f"{key} means nothing: no trigger has such a key." for key in self.unknown]
        lines += [f"{one}, which is no absolute path: no host serves it." for one in self.relative]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Make what `--json` prints."""
        return {
            "file": self.name,
            "entries": dict(self.counts),
            "unknown": self.unknown,
            "relative": self.relative,
        }


def check(content: bytes, *, name: str) -> Checked:
    """Judge the content of the file of this name; OperatorFileError with everything that is wrong with it."""
    triggers: Triggers = parse(content, name=name)
    counts = Counter(_kind(entry) for entry in triggers.entries)
    return Checked(
        name=name, counts=counts, unknown=unknown_keys(content), relative=tuple(_relative(triggers))
    )


def _relative(triggers: Triggers) -> Iterator[str]:
    """Name what is found from nowhere: nothing in a path is expanded, `~` and `$HOME` neither."""
    for entry in triggers.cron:
        for field, path in (("folder", entry.run.folder), ("skillsDir", entry.run.skills_dir)):
            if path is not None and not PurePosixPath(path).is_absolute():
                yield f"{place_of(entry.index, wire(entry))}: run.{field} is {shown(path)}"


def _kind(entry: Trigger) -> str:
    return _SPENT if isinstance(entry.on, Disarmed) else str(wire(entry)["on"]["type"])
