"""Checks for keys of the triggers file that mean nothing, with those that were probably meant."""

from __future__ import annotations

from collections.abc import Iterator

from dispatch.console.findings import Finding
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor.triggers import AREA
from dispatch.operator_files import strict_json
from dispatch.triggers.parse import PART
from dispatch.triggers.unknown import explained_of


def look(file: TriggersFile) -> Iterator[Finding]:
    """Tell them of a file that loads."""
    rows = strict_json.of_loaded(file.content)[PART] if file.triggers else ()
    for said in explained_of(rows):
        yield AREA.warning("unknown-key", said, "Correct it or take it out: docs/triggers.md has all keys.")
