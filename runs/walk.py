"""A walk along an index of the run table: the one way in which lists find their runs (F49).

Each facet has an index that holds all facets, newest run first. A question walks the index of one facet and
looks at the others on the way. It goes `FARTHEST` steps at most and then says how far it came, so that values
that hardly meet cost no more than a page of others. Hence SQL of our own: both databases are left no choice
of another way (SQLite does not know how often a value occurs; PostgreSQL guesses how often two meet).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from django.db import connection

from runs.models import Run

#: Steps of one walk. A facet with fewer runs is walked to its end.
FARTHEST = 30_000
# The value of a facet that means runs without one; none is written so.
NONE = "-"
_TABLE = Run._meta.db_table
_HIGHEST_CHARACTER = "\U0010ffff"


class Facet(StrEnum):
    """A column that one can filter by; each has an index of its own. The choosiest first."""

    HOST = "host"
    REASON = "reason"
    FLOW = "flow"
    MODEL = "model"
    KIND = "kind"
    OUTCOME = "outcome"


@dataclass(frozen=True, slots=True)
class Key:
    """A place in the list, newest first: beside which run a page begins."""

    position: int
    job_id: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read what `str` wrote; None when it is something else."""
        position, tilde, job_id = text.partition("~")
        if not tilde or not position.isascii() or not position.removeprefix("-").isdigit():
            return None
        return cls(int(position), job_id) if len(position) < 19 and "\0" not in job_id else None

    def __str__(self) -> str:
        return f"{self.position}~{self.job_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked for: an id or its beginning, a value per facet, a span of time, and a side of a key.

    The span is in epoch milliseconds, from `since_ms` to before `until_ms`. A facet's value `NONE` asks for
    runs that have none.
    """

    search: str = ""
    facets: dict[Facet, str] = field(default_factory=dict)
    since_ms: int | None = None
    until_ms: int | None = None
    older_than: Key | None = None
    newer_than: Key | None = None


@dataclass(frozen=True, slots=True)
class _Sql:
    text: str
    values: list[Any]


def keys(query: Query, *, size: int) -> tuple[list[Key], Key | None]:
    """Find the `size` runs next to the key: older ones, newest first; or newer ones, oldest first.

    Beside them, where the walk ended before it had found as many and before there was no more; else None.
    """
    facets = sorted(query.facets, key=_choosiness(query))
    if len(facets) < 2:
        return _keys(_steps(query, facets, limit=size)), None
    along = _choosiest(query, facets)
    others = [facet for facet in facets if facet is not along]
    found = _keys(_filtered(query, along, others, size))
    if len(found) == size:
        return found, None
    end = _keys(_steps(query, [along], limit=1, offset=FARTHEST - 1))
    return found, end[0] if end else None


def ids_that_begin(text: str, *, size: int) -> list[str]:
    """List the ids that begin so, the greatest first."""
    low, high, order = "job_id >= %s", "job_id < %s", "job_id DESC"
    if connection.vendor == "postgresql":
        # By bytes, whatever the collation of the database: there is an index for that.
        low, high, order = "job_id ~>=~ %s", "job_id ~<~ %s", "job_id USING ~>~"
    statement = f"SELECT job_id FROM {_TABLE} WHERE {low} AND {high} ORDER BY {order} LIMIT %s"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, [text, text + _HIGHEST_CHARACTER, size])
        return [str(row[0]) for row in cursor.fetchall()]


def _choosiness(query: Query) -> Any:
    # Most runs have no reason: that chooses least of all.
    order = list(Facet)
    return lambda facet: (query.facets[facet] == NONE, order.index(facet))


def _choosiest(query: Query, facets: Sequence[Facet]) -> Facet:
    """Choose the first facet that can be walked to its end, else the one that should be the choosiest."""
    probes = [_steps(query, [facet], limit=1, offset=FARTHEST) for facet in facets]
    statement = f"SELECT {', '.join(f'(SELECT 1 FROM ({probe.text}) AS p)' for probe in probes)}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for probe in probes for value in probe.values])
        goes_on = cursor.fetchone()
    return next((facet for facet, more in zip(facets, goes_on, strict=True) if more is None), facets[0])


def _steps(query: Query, along: Sequence[Facet], *, limit: int, offset: int = 0) -> _Sql:
    """Walk the index of the facet, or of no facet at all, from the key on."""
    is_upwards = query.newer_than is not None
    conditions = [_has(query, facet) for facet in along] + _place(query)
    where = f"WHERE {' AND '.join(one.text for one in conditions)} " if conditions else ""
    down, across = ("ASC", "DESC") if is_upwards else ("DESC", "ASC")
    # With the facet, though it is the same all along: PostgreSQL does not see that of IS NULL.
    order = [*(f"{facet.value} {across}" for facet in along), f"position {down}", f"job_id {down}"]
    columns = ", ".join(("position", "job_id", *(facet.value for facet in Facet)))
    values = [value for one in conditions for value in one.values]
    return _Sql(
        f"SELECT {columns} FROM {_TABLE} {where}"  # noqa: S608
        f"ORDER BY {', '.join(order)} LIMIT %s OFFSET %s",
        [*values, limit, offset],
    )


def _filtered(query: Query, along: Facet, others: Sequence[Facet], size: int) -> _Sql:
    walked = _steps(query, [along], limit=FARTHEST)
    conditions = [_has(query, facet) for facet in others]
    down = "ASC" if query.newer_than else "DESC"
    return _Sql(
        f"SELECT position, job_id FROM ({walked.text}) AS walked"  # noqa: S608
        f" WHERE {' AND '.join(one.text for one in conditions)}"
        f" ORDER BY position {down}, job_id {down} LIMIT %s",
        [*walked.values, *(value for one in conditions for value in one.values), size],
    )


def _has(query: Query, facet: Facet) -> _Sql:
    value = query.facets[facet]
    if value == NONE:
        return _Sql(f"{facet.value} IS NULL", [])
    return _Sql(f"{facet.value} = %s", [value])


def _place(query: Query) -> list[_Sql]:
    """Bound the walk by the span and the key.

    Of a key the first condition alone is what the index is walked along; the second drops its equals.
    """
    found = []
    if query.since_ms is not None:
        found.append(_Sql("position >= %s", [query.since_ms]))
    if query.until_ms is not None:
        found.append(_Sql("position < %s", [query.until_ms]))
    for key, beyond in ((query.older_than, "<"), (query.newer_than, ">")):
        if key is not None:
            found.append(_Sql(f"position {beyond}= %s", [key.position]))
            found.append(_Sql(f"(position {beyond} %s OR job_id {beyond} %s)", [key.position, key.job_id]))
    return found


def _keys(statement: _Sql) -> list[Key]:
    with connection.cursor() as cursor:
        cursor.execute(statement.text, statement.values)
        return [Key(int(row[0]), str(row[1])) for row in cursor.fetchall()]
