"""Questions to the run table: a page of runs, one that has a value, what one can filter by.

None counts rows or walks far, whatever the size of the table (F49): see `runs.walk`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import QuerySet

from runs import walk
from runs.models import Run
from runs.walk import NONE, Facet, Key, Query

__all__ = ["MAX_CHOICES", "NONE", "PAGE_SIZE", "SEARCH_LIMIT", "Facet", "Key", "Page", "Query"]

PAGE_SIZE = 50
SEARCH_LIMIT = 200
MAX_CHOICES = 100

# What a list shows; the wide columns stay in the database.
LISTED = (
    *("job_id", "kind", "target", "flow", "queued_at", "started_at", "ended_at", "outcome", "reason"),
    *("turns", "tokens", "model", "attempt", "final", "host", "position"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Runs, newest first, and the keys to ask for the neighbours.

    `cut`: a search left ids unseen. `looked_to`: the walk ended here, at `walk.FARTHEST` runs, before the
    page was full; the neighbour on that side goes on.
    """

    runs: Sequence[Run]
    newer: Key | None = None
    older: Key | None = None
    cut: bool = False
    looked_to: Key | None = None


def page(query: Query, *, size: int = PAGE_SIZE) -> Page:
    """Answer a page of runs in a few bounded steps. Raises Django's DatabaseError."""
    if query.search:
        return _search(query)
    found, end = walk.keys(query, size=size + 1)
    is_full = len(found) > size
    shown = found[:size]
    if query.newer_than:
        return Page(
            runs=_runs(shown[::-1]),
            newer=shown[-1] if is_full else end,
            older=shown[0] if shown else query.newer_than,
            looked_to=None if is_full else end,
        )
    return Page(
        runs=_runs(shown),
        newer=query.older_than and (shown[0] if shown else query.older_than),
        older=shown[-1] if is_full else end,
        looked_to=None if is_full else end,
    )


def newest(facets: dict[Facet, str], *, size: int) -> list[Run]:
    """List the newest runs that have these values, whole. It walks as far as it must."""
    keys: list[Key] = []
    for found in stretches(Query(facets=facets), size=size):
        keys += found
        if len(keys) >= size:
            break
    return _in_order(Run.objects.all(), keys[:size])


def stretches(query: Query, *, size: int) -> Iterator[list[Key]]:
    """List where all runs of a question are, newest first, up to `size` at a time; some may be empty."""
    while True:
        found, end = walk.keys(query, size=size)
        yield found
        after = found[-1] if len(found) == size else end
        if after is None:
            return
        query = replace(query, older_than=after, newer_than=None)


def children(job_id: str, *, size: int) -> list[Run]:
    """List the newest runs that this one started."""
    return list(
        Run.objects.only(*LISTED).filter(parent_job_id=job_id).order_by("-position", "-job_id")[:size]
    )


def whole(keys: Sequence[Key], *columns: str) -> list[Run]:
    """Read the runs that stand there, every column or these; one that went meanwhile is left out."""
    return _in_order(Run.objects.only(*columns) if columns else Run.objects.all(), keys)


def choices(facets: Sequence[Facet]) -> dict[Facet, list[str]]:
    """List the values that facets have in the table, `MAX_CHOICES` each at most.

    One statement; a walk down each facet's index, a step a value.
    """
    table = connection.ops.quote_name(Run._meta.db_table)
    statement = " UNION ALL ".join(_values_of(table, facet) for facet in facets)
    with connection.cursor() as cursor:
        cursor.execute(statement, [MAX_CHOICES] * len(facets))
        found = cursor.fetchall()
    return {facet: [value for name, value in found if name == facet.value] for facet in facets}


def _values_of(table: str, facet: Facet) -> str:
    column = connection.ops.quote_name(facet.value)
    return (
        f"SELECT '{facet.value}' AS facet, value FROM (WITH RECURSIVE found(value, steps) AS ("  # noqa: S608
        f"SELECT MIN({column}), 1 FROM {table} UNION ALL"
        f" SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > found.value), steps + 1 FROM found"
        f" WHERE found.value IS NOT NULL AND steps < %s)"
        f" SELECT value FROM found WHERE value IS NOT NULL) AS of_{facet.value}"
    )


def _runs(keys: Sequence[Key]) -> list[Run]:
    return _in_order(Run.objects.only(*LISTED), keys)


def _in_order(runs: QuerySet[Run], keys: Sequence[Key]) -> list[Run]:
    found = runs.in_bulk([key.job_id for key in keys])
    return [found[key.job_id] for key in keys if key.job_id in found]


def _search(query: Query) -> Page:
    """Look at the ids that begin so, at the greatest when there are many: a schedule's latest occurrences."""
    ids = walk.ids_that_begin(query.search, size=SEARCH_LIMIT + 1)
    found = Run.objects.only(*LISTED).in_bulk(ids[:SEARCH_LIMIT]).values()
    matching = [run for run in found if _matches(run, query)]
    newest_first = sorted(matching, key=lambda run: (run.position, run.job_id), reverse=True)
    return Page(runs=newest_first, cut=len(ids) > SEARCH_LIMIT)


def _matches(run: Run, query: Query) -> bool:
    return (
        all((getattr(run, facet) or NONE) == value for facet, value in query.facets.items())
        and (query.since_ms is None or run.position >= query.since_ms)
        and (query.until_ms is None or run.position < query.until_ms)
    )
