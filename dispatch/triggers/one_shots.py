"""How the one-shots of a triggers file's raw JSON stand, and the note that one of them is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dispatch.triggers.editing import edit
from dispatch.triggers.entry_places import BY_INDEX, entries_in
from dispatch.triggers.parse import PART
from runs.oneshot import OneShot, one_shot_of_entry

DISARMED = "disarmed"


@dataclass(frozen=True, slots=True)
class Armed:
    """The one-shot may start its job."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The one-shot has started its job; `by` is that job's id where the file says it."""

    by: str | None


@dataclass(frozen=True, slots=True)
class Changed:
    """What the one-shot was is not there any more; `reason` is a token."""

    reason: str


def standing(document: Any, once: OneShot) -> Armed | Spent | Changed:
    """Tell how the entry stands that a job matched; never raises, whatever the document is."""
    entries = document.get(PART) if isinstance(document, dict) else None
    if not isinstance(entries, list) or once.index >= len(entries):
        return Changed("no-entry")
    entry = entries[once.index]
    found = one_shot_of_entry(once.index, entry)
    if found is None:
        return Changed("not-one-shot")
    if found.number != once.number:
        return Changed("another-number")
    if found.slot != once.slot:
        return Changed("another-flow")
    if DISARMED not in entry["on"]:
        return Armed()
    spent = entry["on"][DISARMED]
    by = spent.get("jobId") if isinstance(spent, dict) else None
    return Spent(by if isinstance(by, str) else None)


def one_shots_in(document: Any) -> tuple[OneShot, ...]:
    """List the one-shots of a document, armed or spent; never raises, whatever it is."""
    entries = document.get(PART) if isinstance(document, dict) else None
    found = (
        one_shot_of_entry(at, one) for at, one in enumerate(entries if isinstance(entries, list) else ())
    )
    return tuple(one for one in found if one)


def disarmed(document: Any, once: OneShot, *, job_id: str, at: str) -> Any:
    """Note on an armed one-shot which job spent it and when (ISO 8601)."""
    entry = entries_in(document)[once.index]
    on = {**entry["on"], DISARMED: {"at": at, "jobId": job_id}}
    return edit(document, f"{BY_INDEX}{once.index}", {**entry, "on": on})
