"""A page of the run table as data: an explicit list of fields, since a record may name more."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import QueryDict

from dispatch.api import asked
from runs import history, list_address, rows
from runs.models import Run
from runs.walk import Facet, Key, Query

DEFAULT_LIMIT = 50
MOST = 200
# Of a record all but `target`, which has a folder's or repository's name, and `session`.
_SHOWN = (
    *("jobId", "kind", "flow", "queuedAt", "startedAt", "endedAt", "outcome", "reason", "exitCode", "turns"),
    *("tokens", "usage", "provider", "model", "budgetReserved", "attempt", "final", "parentJobId"),
    *("chainDepth", "chainRefused", "replica", "replicas", "triggerIndex", "triggerType", "scopeHash"),
    *("imageDigest", "host"),
)
_NEXT = "next"


def query_of(given: QueryDict, now: datetime) -> Query:
    """Read the filters of the run list, and `next` as an answer gave it; nothing is left out quietly."""
    filters = (list_address.SEARCH, *(facet.value for facet in Facet), list_address.SINCE, list_address.UNTIL)
    asked.only(given, (*filters, _NEXT, "limit"))
    read = list_address.read({name: str(given[name]) for name in given}, now)
    if read.problems:
        raise asked.wrong(read.problems[0])
    for value in read.unknown:
        # A record of a later version may have another reason or kind, but no other outcome.
        if value.facet is Facet.OUTCOME:
            raise asked.wrong(f"{value}; allowed are {', '.join(value.allowed)}.")
    text = given.get(_NEXT)
    after = Key.parse(text) if text else None
    if text and after is None:
        raise asked.wrong("next is not what an answer of this address gave.")
    return replace(read.query, older_than=after)


def read(query: Query, *, limit: int) -> dict[str, Any]:
    """Answer the runs asked for, newest first.

    `next` is null at the end; until then a page may be short, even empty, when few runs match. `cut`: more
    ids begin so than are looked at. Raises Django's DatabaseError.
    """
    page = history.page(query, size=limit)
    found = history.whole([Key(run.position, run.job_id) for run in page.runs[:limit]])
    return {
        "runs": [_shown(run) for run in found],
        "next": None if page.older is None else str(page.older),
        "cut": page.cut or len(page.runs) > limit,
    }


def _shown(run: Run) -> dict[str, Any]:
    recorded = rows.as_recorded(run)
    return {name: recorded[name] for name in _SHOWN}
