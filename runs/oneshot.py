"""Which entry of the triggers file a job spends: what a record keeps of it (Q 5.1, one-shot disarm).

An entry with `once` may start one job. A record names the entry by its place, its number and a digest of its
flow or command, so that nothing else of the file stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runs import shape
from runs.workspace.scope import hash16

_SLOT = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """An entry that may start one job: position in the file, number of the item, `slot_hash` of its flow."""

    index: int
    number: int
    slot: str

    def to_json(self) -> dict[str, int | str]:
        """Write it as a record keeps it."""
        return {"index": self.index, "number": self.number, "slot": self.slot}


def slot_hash(*, flow: str | None, command: str | None) -> str:
    """Hash which flow or command is meant to 16 hex digits; a command takes the flow's place (Q 2.3)."""
    return hash16(f"cmd:{command}" if command else flow or "")


def one_shot_of(data: Mapping[str, object]) -> OneShot | None:
    """Read off a job's data (the keys of the wire) which entry it spends; None for every other job."""
    trigger = data.get("trigger")
    matched = trigger.get("matched") if isinstance(trigger, Mapping) else None
    if not isinstance(matched, Mapping) or matched.get("once") is not True:
        return None
    return _named(matched.get("index"), matched.get("number"), data)


def one_shot_of_entry(index: int, entry: object) -> OneShot | None:
    """Read off an entry of the triggers file what jobs that match it spend; None for every other entry."""
    on, run = (entry.get(part) if isinstance(entry, Mapping) else None for part in ("on", "run"))
    if not isinstance(on, Mapping) or not isinstance(run, Mapping) or on.get("once") is not True:
        return None
    return _named(index, on.get("number"), run)


def _named(index: object, number: object, run: Mapping[str, object]) -> OneShot | None:
    place, item = shape.or_none(shape.count, index), shape.or_none(shape.count, number)
    flow, command = run.get("flow"), run.get("command")
    if place is None or item is None:
        return None
    slot = slot_hash(
        flow=flow if isinstance(flow, str) else None, command=command if isinstance(command, str) else None
    )
    return OneShot(index=place, number=item, slot=slot)


def read(value: object) -> OneShot:
    """Read it off a record; ShapeError for anything else."""
    given = shape.mapping(value)
    slot = given.get("slot")
    if not isinstance(slot, str) or not _SLOT.fullmatch(slot):
        raise shape.ShapeError("16 hex digits are expected")
    return OneShot(index=shape.count(given.get("index")), number=shape.count(given.get("number")), slot=slot)
