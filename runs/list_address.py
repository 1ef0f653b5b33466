"""What the address of a list of runs asks for: read leniently, since anybody may write an address.

`q` is an id or its beginning; each facet has its own name; `since` and `until` bound the end of a run;
`older_than` and `newer_than` are keys that the list itself gave out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from runs.walk import NONE, Facet, Key, Query
from runs.wording import OUTCOMES, REASONS

SEARCH = "q"
SINCE, UNTIL = "since", "until"
OLDER_THAN, NEWER_THAN = "older_than", "newer_than"
#: What an instant may look like, for whoever wrote something else.
INSTANTS = "24h, 7d, 2026-11-30 or 2026-11-30 12:00 (UTC)"

_FILTERS = (SEARCH, *(facet.value for facet in Facet), SINCE, UNTIL)
#: Where a job's repository lives (`dispatch.ids.Kind`).
KINDS = ("local", "github", "gitlab", "forgejo", "azure")
_CLOSED: Mapping[Facet, tuple[str, ...]] = {
    Facet.OUTCOME: tuple(OUTCOMES),
    Facet.REASON: (*REASONS, NONE),
    Facet.KIND: (*KINDS, NONE),
}
_LONGEST = 600
_AGO = re.compile(r"([1-9][0-9]{0,4})([mhd])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that a facet with a closed vocabulary cannot have; `allowed` are those that it can."""

    facet: Facet
    text: str
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in a sentence without its full stop."""
        return f"“{self.text}” is no {self.facet.value} that this version knows"


@dataclass(frozen=True, slots=True)
class Asked:
    """The question, what the filter form shows of it, and a sentence for each thing not understood.

    What `problems` are of is not in the query; `unknown` is in it, and no run of this version has that.
    """

    query: Query
    texts: Mapping[str, str]
    problems: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()

    @property
    def is_filtered(self) -> bool:
        """Whether anything narrows the list."""
        return bool(self.texts)

    def address(self, **beside: Key | None) -> str:
        """Write the address of the same question beside a key, or from the newest on."""
        keys = {name: str(key) for name, key in beside.items() if key is not None}
        return f"?{urlencode({**self.texts, **keys})}"


def read(given: Mapping[str, str], now: datetime) -> Asked:
    """Read an address' parameters; what is not understood is as if it were not there, but is said."""
    texts = {name: _text(given.get(name, "")) for name in _FILTERS}
    since, until = (_instant(texts[name], now, is_end=name == UNTIL) for name in (SINCE, UNTIL))
    query = Query(
        search=texts[SEARCH],
        facets={facet: texts[facet.value] for facet in Facet if texts[facet.value]},
        since_ms=since,
        until_ms=until,
        older_than=Key.parse(given.get(OLDER_THAN, "")),
        newer_than=Key.parse(given.get(NEWER_THAN, "")),
    )
    problems = tuple(
        f"“{texts[name]}” ({name}) is no instant; write {INSTANTS}."
        for name, found in ((SINCE, since), (UNTIL, until))
        if texts[name] and found is None
    )
    unknown = tuple(
        Unknown(facet, texts[facet.value], allowed)
        for facet, allowed in _CLOSED.items()
        if texts[facet.value] and texts[facet.value] not in allowed
    )
    return Asked(query, {name: text for name, text in texts.items() if text}, problems, unknown)


def _text(given: str) -> str:
    return given.strip().replace("\0", "")[:_LONGEST]


def _instant(text: str, now: datetime, *, is_end: bool) -> int | None:
    """Read so long ago, a day (the end: all of it) or an instant; in epoch milliseconds, else None."""
    try:
        ago = _AGO.fullmatch(text)
        if ago:
            moment = now - int(ago[1]) * _UNITS[ago[2]]
        else:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            moment += timedelta(days=1) if is_end and _DAY.fullmatch(text) else timedelta()
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
