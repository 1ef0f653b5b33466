"""A page of the run table as data: an explicit list of fields, since a record may name more."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from dispatch.api import asked
from runs import history, rows
from runs.history import Facet, Key, Page, Query
from runs.models import Run

DEFAULT_LIMIT = 50
MOST = 200
# Of a record all but `target`, which has a folder's or repository's name, and `session`.
_SHOWN = (
    *("jobId", "kind", "flow", "queuedAt", "startedAt", "endedAt", "outcome", "reason", "exitCode", "turns"),
    *("tokens", "usage", "provider", "model", "budgetReserved", "attempt", "final", "parentJobId"),
    *("chainDepth", "chainRefused", "replica", "replicas", "triggerIndex", "triggerType", "scopeHash"),
    *("imageDigest", "host"),
)
_SEARCH, _NEXT = "q", "next"


def query_of(given: QueryDict) -> Query:
    """Read the filters of the run list (`q`, one value a facet), and `next` as an answer gave it."""
    asked.only(given, (_SEARCH, *(facet.value for facet in Facet), _NEXT, "limit"))
    text = given.get(_NEXT)
    after = Key.parse(text) if text else None
    if text and after is None:
        raise asked.wrong("next is not what an answer of this address gave.")
    return Query(
        search=given.get(_SEARCH, "").strip(),
        facets={facet: value for facet in Facet if (value := given.get(facet.value, "").strip())},
        older_than=after,
    )


def read(query: Query, *, limit: int) -> dict[str, Any]:
    """Answer the runs asked for, newest first, with two statements; `next` is null at the end.

    `cut`: there are more ids that begin so than are looked at. Raises Django's DatabaseError.
    """
    page = history.page(query, size=limit)
    found = page.runs[:limit]
    # The list reads some columns only; by their keys the rest costs one more statement.
    whole = Run.objects.in_bulk([run.job_id for run in found])
    return {
        "runs": [_shown(whole.get(run.job_id, run)) for run in found],
        "next": _next(page, limit),
        "cut": page.cut or len(page.runs) > limit,
    }


def _next(page: Page, limit: int) -> str | None:
    return None if page.older is None else str(page.older)


def _shown(run: Run) -> dict[str, Any]:
    recorded = rows.as_recorded(run)
    return {name: recorded[name] for name in _SHOWN}
