"""Checks for keys of the triggers file that mean nothing, with those that were probably meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from difflib import get_close_matches

from dispatch.console.findings import Finding
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor.triggers import AREA
from dispatch.jobrules import wire_name
from dispatch.triggers.entries import TYPES, Run
from dispatch.triggers.unknown import unknown_keys

_RUN = tuple(wire_name(one.name) for one in fields(Run))
_ON = tuple(sorted({"type"} | {wire_name(one.name) for kind in TYPES.values() for one in fields(kind)}))


def look(file: TriggersFile) -> Iterator[Finding]:
    """Tell them of a file that loads."""
    for place in unknown_keys(file.content) if file.triggers else ():
        parent, _, key = place.rpartition(".")
        allowed = _RUN if parent.endswith(".run") else _ON if parent.endswith(".on") else ("on", "run")
        meant = {one.lower(): one for one in allowed}
        near = get_close_matches(key.lower(), meant, n=1)
        yield AREA.warning(
            "unknown-key",
            f"{place} means nothing: no trigger has such a key",
            f"Did you mean {meant[near[0]]}?" if near else "Take it out: docs/triggers.md has all keys.",
        )
