"""Questions to the run table: a page of runs, what one can filter by. None counts rows or walks far (F49)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from django.db import connection
from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.functions import Coalesce

from runs.models import Run

PAGE_SIZE = 50
SEARCH_LIMIT = 200
# The value of the reason facet that means a run without a reason; no reason is written so.
NONE = "-"
MAX_CHOICES = 100

# What a list shows; the wide columns stay in the database.
_LISTED = (
    *("job_id", "kind", "target", "flow", "queued_at", "started_at", "ended_at", "outcome", "reason"),
    *("turns", "tokens", "attempt", "final", "host", "position"),
)
_HIGHEST_CHARACTER = "\U0010ffff"


class Facet(StrEnum):
    """A column that one can filter by; each has an index of its own. The choosiest first."""

    HOST = "host"
    REASON = "reason"
    KIND = "kind"
    OUTCOME = "outcome"


@dataclass(frozen=True, slots=True)
class Key:
    """A place in the list, newest first: beside which run a page begins."""

    position: int
    job_id: str

    @classmethod
    def of(cls, run: Run) -> Self:
        """Say where a run stands."""
        return cls(run.position, run.job_id)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read what `str` wrote; None when it is something else."""
        position, tilde, job_id = text.partition("~")
        if not tilde or not position.isascii() or not position.removeprefix("-").isdigit():
            return None
        return cls(int(position), job_id) if len(position) < 19 else None

    def __str__(self) -> str:
        return f"{self.position}~{self.job_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked for: an id or its beginning, one value per facet, and a side of a key."""

    search: str = ""
    facets: dict[Facet, str] = field(default_factory=dict)
    older_than: Key | None = None
    newer_than: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Runs, newest first, and the keys to ask for the neighbours; `cut` when a search left ids unseen."""

    runs: Sequence[Run]
    newer: Key | None = None
    older: Key | None = None
    cut: bool = False


def page(query: Query, *, size: int = PAGE_SIZE) -> Page:
    """Answer a page of runs with one statement."""
    if query.search:
        return _search(query)
    runs = _filtered(query)
    if query.newer_than:
        return _page_upwards(runs, query.newer_than, size)
    return _page_downwards(runs, query.older_than, size)


def newest(facets: dict[Facet, str], *, size: int) -> list[Run]:
    """List the newest runs that have these values, whole."""
    return list(_filtered(Query(facets=facets)).defer(None).order_by("-position", "-job_id")[:size])


def choices(facet: Facet) -> list[str]:
    """List the values that a facet has in the table; one walk down its index, a step a value."""
    table = connection.ops.quote_name(Run._meta.db_table)
    column = connection.ops.quote_name(facet.value)
    statement = (
        f"WITH RECURSIVE found(value, steps) AS (SELECT MIN({column}), 1 FROM {table} UNION ALL"  # noqa: S608
        f" SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > found.value), steps + 1 FROM found"
        f" WHERE found.value IS NOT NULL AND steps < %s)"
        f" SELECT value FROM found WHERE value IS NOT NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [MAX_CHOICES])
        return [value for (value,) in cursor.fetchall()]


def _filtered(query: Query) -> QuerySet[Run]:
    """Walk the index of the choosiest facet; look at the others on the way.

    SQLite knows nothing of how often a value occurs and would take any of the indexes, even the one that
    leads through most of the table.
    """
    runs = Run.objects.only(*_LISTED)
    for place, facet in enumerate(sorted(query.facets, key=_choosiness(query))):
        value = query.facets[facet]
        absent = facet is Facet.REASON and value == NONE
        if place == 0:
            runs = runs.filter(**({f"{facet}__isnull": True} if absent else {facet.value: value}))
            continue
        off_index = Coalesce(facet.value, Value("", output_field=TextField()))
        runs = runs.alias(**{f"plain_{facet}": off_index})
        runs = runs.filter(**{f"plain_{facet}": "" if absent else value})
    return runs


def _choosiness(query: Query) -> Callable[[Facet], tuple[bool, int]]:
    # Most runs have no reason: that chooses least of all.
    order = list(Facet)
    return lambda facet: (query.facets[facet] == NONE, order.index(facet))


def _search(query: Query) -> Page:
    """Look at the ids that begin so, at the greatest when there are many: a schedule's latest occurrences."""
    # A range, because SQLite cannot walk an index for LIKE; PostgreSQL has an index of its own for it.
    begins = Q(job_id__gte=query.search, job_id__lt=query.search + _HIGHEST_CHARACTER)
    begins = begins if connection.vendor == "sqlite" else Q(job_id__startswith=query.search)
    found = list(Run.objects.only(*_LISTED).filter(begins).order_by("-job_id")[: SEARCH_LIMIT + 1])
    matching = [run for run in found[:SEARCH_LIMIT] if _matches(run, query)]
    newest_first = sorted(matching, key=lambda run: (run.position, run.job_id), reverse=True)
    return Page(runs=newest_first, cut=len(found) > SEARCH_LIMIT)


def _matches(run: Run, query: Query) -> bool:
    return all((getattr(run, facet) or NONE) == value for facet, value in query.facets.items())


def _page_downwards(runs: QuerySet[Run], start: Key | None, size: int) -> Page:
    if start is not None:
        # The first condition alone is what the index walks along; the second drops the key's equals.
        runs = runs.filter(position__lte=start.position).exclude(
            position=start.position, job_id__gte=start.job_id
        )
    found = list(runs.order_by("-position", "-job_id")[: size + 1])
    shown = found[:size]
    return Page(
        runs=shown,
        newer=Key.of(shown[0]) if start is not None and shown else None,
        older=Key.of(shown[-1]) if len(found) > size else None,
    )


def _page_upwards(runs: QuerySet[Run], start: Key, size: int) -> Page:
    runs = runs.filter(position__gte=start.position).exclude(
        position=start.position, job_id__lte=start.job_id
    )
    found = list(runs.order_by("position", "job_id")[: size + 1])
    shown = found[:size][::-1]
    return Page(
        runs=shown,
        newer=Key.of(shown[0]) if len(found) > size else None,
        older=Key.of(shown[-1]) if shown else None,
    )
