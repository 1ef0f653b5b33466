"""Keeps the rollups in step with the run table, within the transaction that changes a row.

What a row said before is taken away and what it says now is added. Rows that retention removes stay counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from runs.models import Rollup, Run
from runs.rollup_figures import COLUMNS, NEEDED, Dimension, Figures, add, contributions
from runs.rollup_periods import Grain, hour_of, periods_of

#: More values than this of one dimension in one period are counted together, as the rest.
MOST_VALUES = 500

#: By what all runs there ever were are counted.
EVER_BY = (Dimension.TOTAL, Dimension.END)

_RANK = ("attempt", "final", "position")
# Any number that nothing else in the database uses as an advisory lock.
_LOCK = 6_072_115_001
_AT_ONCE = 400


class Key(NamedTuple):
    """What a rollup is of; `rest`: all values that found no place of their own."""

    grain: Grain
    start: int
    dimension: Dimension
    value: str
    rest: bool = False


Tally = dict[Key, Figures]


def lock(cursor: CursorWrapper) -> None:
    """Let nobody else change runs or rollups until the transaction ends. SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def changes(incoming: Sequence[tuple[str, Mapping[str, Any]]]) -> Tally:
    """Tell what the rollups gain and lose when these rows (job id, columns) are written; call it locked.

    A row counts only if it is newer news than the table's, as the writing itself judges.
    """
    known = {
        job_id: rank
        for job_id, *rank in Run.objects.filter(pk__in={job_id for job_id, _ in incoming}).values_list(
            "pk", *_RANK
        )
    }
    stored = set(known)
    news: dict[str, Mapping[str, Any]] = {}
    for job_id, columns in incoming:
        rank = [columns[name] for name in _RANK]
        if job_id not in known or rank > known[job_id]:
            known[job_id] = rank
            news[job_id] = columns
    replacing = [job_id for job_id in news if job_id in stored]
    rows = Run.objects.filter(pk__in=replacing).values("pk", *NEEDED) if replacing else ()
    before = {row["pk"]: row for row in rows}
    tally: Tally = {}
    for job_id, columns in news.items():
        replaced = before.get(job_id)
        if replaced:
            count(tally, replaced, times=-1)
        count(tally, columns)
        if not (replaced and replaced["final"]):
            count_ever(tally, columns)
    return tally


def count(tally: Tally, run: Mapping[str, Any], *, times: int = 1) -> None:
    """Count a run in each of its periods."""
    periods = periods_of(hour_of(run["position"]))
    for dimension, value, figures in contributions(run):
        for grain, start in periods:
            add(tally.setdefault(Key(grain, start, dimension, value), {}), figures, times=times)


def count_ever(tally: Tally, run: Mapping[str, Any]) -> None:
    """Count a run among all there ever were."""
    for dimension, value, figures in contributions(run):
        if dimension in EVER_BY:
            add(tally.setdefault(Key(Grain.EVER, 0, dimension, value), {}), figures)


def apply(cursor: CursorWrapper, tally: Tally) -> None:
    """Add the tally to the rollups; call it locked."""
    given = {key: figures for key, figures in tally.items() if any(figures.values())}
    if not given:
        return
    placed: Tally = {}
    for key, place in zip(given, _places(cursor, list(given)), strict=True):
        add(placed.setdefault(place, {}), given[key])
    rows = [
        [*_plain(key), *(figures.get(column, 0) for column in COLUMNS)]
        for key, figures in sorted(placed.items())
    ]
    cursor.executemany(_upsert(), rows)


def _places(cursor: CursorWrapper, keys: Sequence[Key]) -> list[Key]:
    """Say where each is counted: under its own value if there is such a rollup or room for it."""
    known = set(_known(cursor, keys))
    unknown = [key for key in keys if key not in known and not key.rest]
    room = {(key.dimension, key.grain, key.start): MOST_VALUES for key in unknown}
    for group, used in _used(cursor, list(room)):
        room[group] -= used
    places = {}
    for key in unknown:
        group = (key.dimension, key.grain, key.start)
        places[key] = key if room[group] > 0 else key._replace(value="", rest=True)
        room[group] -= 1
    return [places.get(key, key) for key in keys]


def _known(cursor: CursorWrapper, keys: Sequence[Key]) -> Iterable[Key]:
    columns = ("dimension", "grain", "start", "value")
    for found in _matching(cursor, columns, [(k.dimension, k.grain, k.start, k.value) for k in keys]):
        dimension, grain, start, value = found
        yield Key(Grain(grain), start, Dimension(dimension), value)


def _used(
    cursor: CursorWrapper, groups: Sequence[tuple[Dimension, Grain, int]]
) -> Iterable[tuple[tuple[Dimension, Grain, int], int]]:
    tail = f" GROUP BY {', '.join(f'wanted.{name}' for name in ('dimension', 'grain', 'start'))}"
    for dimension, grain, start, used in _matching(
        cursor, ("dimension", "grain", "start"), groups, also=", COUNT(*)", tail=tail
    ):
        yield (Dimension(dimension), Grain(grain), start), used


def _matching(
    cursor: CursorWrapper,
    columns: Sequence[str],
    wanted: Sequence[tuple[Any, ...]],
    *,
    also: str = "",
    tail: str = "",
) -> Iterable[tuple[Any, ...]]:
    """Read from the rollups, but for the rests, what has these values in these columns."""
    names = ", ".join(columns)
    table = connection.ops.quote_name(Rollup._meta.db_table)
    same = " AND ".join(f"rollup.{name} = wanted.{name}" for name in columns)
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        row = f"({', '.join(['%s'] * len(columns))})"
        cursor.execute(
            f"WITH wanted({names}) AS (VALUES {', '.join([row] * len(part))})"  # noqa: S608 - names of ours
            f" SELECT {', '.join(f'wanted.{name}' for name in columns)}{also}"
            f" FROM wanted JOIN {table} rollup ON {same} AND NOT rollup.rest{tail}",
            [value for row in part for value in _plain(row)],
        )
        yield from cursor.fetchall()


def _plain(values: Iterable[Any]) -> list[Any]:
    # A driver may know better than we what an enumeration is to the database.
    return [value.value if isinstance(value, Enum) else value for value in values]


@cache
def _upsert() -> str:
    quote = connection.ops.quote_name
    table = quote(Rollup._meta.db_table)
    key = ", ".join(quote(name) for name in Key._fields)
    names = ", ".join(quote(name) for name in (*Key._fields, *COLUMNS))
    sums = ", ".join(f"{quote(name)} = {table}.{quote(name)} + excluded.{quote(name)}" for name in COLUMNS)
    return (
        f"INSERT INTO {table} ({names}) VALUES ({', '.join(['%s'] * (len(Key._fields) + len(COLUMNS)))})"  # noqa: S608
        f" ON CONFLICT ({key}) DO UPDATE SET {sums}"
    )
