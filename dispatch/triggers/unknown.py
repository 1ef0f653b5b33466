"""Keys of a triggers file that mean nothing: the reference drops them silently, we say them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from dispatch.jobrules import wire_name
from dispatch.operator_files import strict_json
from dispatch.triggers.entries import TYPES, Run
from dispatch.triggers.meant import explained
from dispatch.triggers.parse import PART

_ENTRY = frozenset({"on", "run"})
_RUN = frozenset(wire_name(field.name) for field in fields(Run))
# What only a schedule has; the others are refused where they mean nothing.
_RUN_OF_A_FORGE = _RUN - {"folder", "task", "github", "provider", "model", "maxTurns"}
_ON: Mapping[str, frozenset[str]] = {
    name: frozenset({"type", "disarmed"} | {wire_name(field.name) for field in fields(kind)})
    for name, kind in TYPES.items()
}


def unknown_keys(content: bytes) -> tuple[str, ...]:
    """Name what means nothing in a file that loads: `triggers[0].on.timezone`, as `strict_json` does."""
    return strict_json.unknown_in(_objects(strict_json.of_loaded(content)[PART]))


def explained_of(rows: Sequence[Mapping[str, Any]], *, first: int = 0) -> tuple[str, ...]:
    """Say of entries that load what means nothing in them, with what may be meant, a sentence each.

    `first` is the place of the first of them in the file.
    """
    said = (
        f"{strict_json.unknown_in([(place, {key: None}, ())])[0]} means nothing: {explained(key, known)}"
        for place, row, known in _objects(rows, first)
        for key in row
        if key not in known
    )
    return tuple(islice(said, strict_json.MOST_UNKNOWN))


def _objects(
    rows: Sequence[Mapping[str, Any]], first: int = 0
) -> Iterator[tuple[str, Mapping[str, Any], frozenset[str]]]:
    for index, row in enumerate(rows, first):
        place = f"{PART}[{index}]"
        yield place, row, _ENTRY
        yield f"{place}.on", row["on"], _ON[row["on"]["type"]]
        yield f"{place}.run", row["run"], _RUN if row["on"]["type"] == "cron" else _RUN_OF_A_FORGE
