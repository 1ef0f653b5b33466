"""Changes of a triggers file's raw JSON (Q 5.1): what nobody asked to change stays as it was written.

Each answers a new document and leaves the given one as it is. Whether the result is a triggers file is judged
by the loader; here is refused, as ConfigurationError, only what names no entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatch.operator_files.problems import shown
from dispatch.triggers.parse import PART
from pidispatch_site.errors import ConfigurationError
from runs.oneshot import OneShot, one_shot_of_entry

DISARMED = "disarmed"
_BY_INDEX, _BY_ID = "index:", "id:"
_ALLOWED = "name an entry by its index, counted from 0, or by the id of its schedule"
EMPTY: Mapping[str, Any] = {PART: []}


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


def add(document: Any, entry: object) -> Any:
    """Put an entry behind the others: their places stay."""
    return _with(document, [*_entries(document), entry])


def edit(document: Any, place: str, entry: object) -> Any:
    """Put an entry in the place of another."""
    entries, index = _entries(document), find(document, place)
    return _with(document, [*entries[:index], entry, *entries[index + 1 :]])


def remove(document: Any, place: str) -> Any:
    """Take an entry out: those behind it move up."""
    entries, index = _entries(document), find(document, place)
    return _with(document, [*entries[:index], *entries[index + 1 :]])


def find(document: Any, place: str) -> int:
    """Find the index of the entry that a person names: by `3`, by `nightly`, by `index:3` or `id:nightly`."""
    entries = _entries(document)
    if place.startswith(_BY_INDEX):
        return _by_index(entries, place.removeprefix(_BY_INDEX))
    if place.startswith(_BY_ID):
        return _by_id(entries, place.removeprefix(_BY_ID))
    named, is_index = _indexes_of(entries, place), _is_number(place) and int(place) < len(entries)
    if is_index and named not in ([], [int(place)]):
        raise ConfigurationError(
            f"{place} is an index and the id of a schedule; write {_BY_INDEX}{place} or {_BY_ID}{place}"
        )
    return _by_id(entries, place) if named or not _is_number(place) else _by_index(entries, place)


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
    entry = _entries(document)[once.index]
    on = {**entry["on"], DISARMED: {"at": at, "jobId": job_id}}
    return edit(document, f"{_BY_INDEX}{once.index}", {**entry, "on": on})


def _entries(document: Any) -> list[Any]:
    entries = document.get(PART) if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ConfigurationError(
            f'the file holds no list of {PART}, as {{"{PART}": []}} does; mend it by hand first'
        )
    return entries


def _with(document: Any, entries: list[Any]) -> Any:
    return {**document, PART: entries}


def _by_index(entries: list[Any], text: str) -> int:
    if not _is_number(text) or int(text) >= len(entries):
        raise ConfigurationError(f"there is no entry {shown(text)}: {_count(entries)}; {_ALLOWED}")
    return int(text)


def _by_id(entries: list[Any], text: str) -> int:
    match _indexes_of(entries, text):
        case []:
            raise ConfigurationError(f"there is no schedule {shown(text)}: {_count(entries)}; {_ALLOWED}")
        case [index]:
            return index
        case [*several]:
            places = " and ".join(f"{_BY_INDEX}{index}" for index in several)
            raise ConfigurationError(f"{shown(text)} is the id of several schedules; name one of {places}")


def _indexes_of(entries: list[Any], id_: str) -> list[int]:
    return [index for index, entry in enumerate(entries) if _cron_id(entry) == id_]


def _cron_id(entry: object) -> object:
    on = entry.get("on") if isinstance(entry, dict) else None
    return on.get("id") if isinstance(on, dict) and on.get("type") == "cron" else None


def _is_number(text: str) -> bool:
    # No more digits than an index can have: a longer one is no number that Python reads gladly.
    return text.isascii() and text.isdigit() and len(text) <= len(str(2**31))


def _count(entries: list[Any]) -> str:
    return f"the file has {len(entries)}" if entries else "the file has none"
