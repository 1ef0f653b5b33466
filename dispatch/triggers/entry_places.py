"""Which entry of a triggers file's raw JSON a person names; ConfigurationError for what names none."""

from __future__ import annotations

from typing import Any

from dispatch.operator_files.problems import shown
from dispatch.triggers.parse import PART
from pidispatch_site.errors import ConfigurationError

BY_INDEX, _BY_ID = "index:", "id:"
_ALLOWED = "name an entry by its index, counted from 0, or by the id of its schedule"


def find(document: Any, place: str) -> int:
    """Find the index of the entry that a person names: by `3`, by `nightly`, by `index:3` or `id:nightly`."""
    entries = entries_in(document)
    if place.startswith(BY_INDEX):
        return _by_index(entries, place.removeprefix(BY_INDEX))
    if place.startswith(_BY_ID):
        return _by_id(entries, place.removeprefix(_BY_ID))
    named, is_index = _indexes_of(entries, place), _is_number(place) and int(place) < len(entries)
    if is_index and named not in ([], [int(place)]):
        raise ConfigurationError(
            f"{place} is an index and the id of a schedule; write {BY_INDEX}{place} or {_BY_ID}{place}"
        )
    return _by_id(entries, place) if named or not _is_number(place) else _by_index(entries, place)


def entries_in(document: Any) -> list[Any]:
    """Take the entries of a document; ConfigurationError for one that has no list of them."""
    entries = document.get(PART) if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ConfigurationError(
            f'the file holds no list of {PART}, as {{"{PART}": []}} does; mend it by hand first'
        )
    return entries


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
            places = " and ".join(f"{BY_INDEX}{index}" for index in several)
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
