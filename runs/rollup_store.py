"""Adds tallies to the rollup table; who calls it holds the lock of `rollup_writing`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from runs.models import Rollup
from runs.rollup_figures import COLUMNS, COUNTERS, TOOK, WAITED, Dimension, Figures, add
from runs.rollup_periods import Grain
from runs.rollup_tally import Key, Tally

#: More values than this of one dimension in one period are counted together, as the rest.
MOST_VALUES = 500

# Questions, or rows, in one statement.
_AT_ONCE = 100
_GROUP = "dimension, grain, start"
_OF_GROUP = "dimension = %s AND grain = %s AND start = %s AND NOT rest"

_Group = tuple[Dimension, Grain, int]


def add_up(cursor: CursorWrapper, tally: Tally) -> None:
    """Add the tally to the rollups."""
    given = {key: figures for key, figures in tally.items() if any(figures.values())}
    if not given:
        return
    placed: Tally = {}
    for key, place in zip(given, _places(cursor, list(given)), strict=True):
        add(placed.setdefault(place, {}), given[key])
    rows = sorted(placed.items())
    for start in range(0, len(rows), _AT_ONCE):
        _upsert(cursor, rows[start : start + _AT_ONCE])


def _upsert(cursor: CursorWrapper, rows: Sequence[tuple[Key, Figures]]) -> None:
    quote = connection.ops.quote_name
    table = quote(Rollup._meta.db_table)
    key = ", ".join(quote(name) for name in Key._fields)
    names = ", ".join(quote(name) for name in (*Key._fields, *COLUMNS))
    sums = ", ".join(f"{quote(name)} = {_sum(f'{table}.{quote(name)}', quote(name))}" for name in COLUMNS)
    cursor.execute(
        f"INSERT INTO {table} ({names}) VALUES {', '.join(_literal(*row) for row in rows)}"  # noqa: S608
        f" ON CONFLICT ({key}) DO UPDATE SET {sums}",
        [text for key, _ in rows for text in (key.dimension.value, key.value)],
    )


def _sum(there: str, column: str) -> str:
    # Where one of them is null it is the other.
    return f"COALESCE({there} + excluded.{column}, {there}, excluded.{column})"


def _literal(key: Key, figures: Figures) -> str:
    # Whole numbers of ours stand in the statement itself: as parameters their hundreds cost more than all
    # the rest.
    counted = [f"{figures.get(column, 0):d}" for column in COUNTERS]
    numbers = ", ".join([*counted, *(f"{figures.get(column) or 'NULL'}" for column in (*TOOK, *WAITED))])
    return f"({key.grain:d}, {key.start:d}, %s, %s, {'TRUE' if key.rest else 'FALSE'}, {numbers})"


def _places(cursor: CursorWrapper, keys: Sequence[Key]) -> list[Key]:
    """Say where each is counted: under its own value if there is such a rollup or room for it."""
    wanted: dict[_Group, list[str]] = {}
    for key in keys:
        if not key.rest:
            wanted.setdefault((key.dimension, key.grain, key.start), []).append(key.value)
    known = _known(cursor, wanted)
    unknown = {group: len(set(values) - known[group]) for group, values in wanted.items()}
    used = _used(cursor, [group for group, count in unknown.items() if count])
    places = []
    for key in keys:
        group = (key.dimension, key.grain, key.start)
        if not key.rest and key.value not in known[group]:
            used[group] += 1
            if used[group] > MOST_VALUES:
                key = key._replace(value="", rest=True)
        places.append(key)
    return places


def _known(cursor: CursorWrapper, wanted: Mapping[_Group, Sequence[str]]) -> dict[_Group, set[str]]:
    """Read which of these values have a rollup."""
    known: dict[_Group, set[str]] = {group: set() for group in wanted}
    asked = [
        (
            f"SELECT {_GROUP}, value FROM {{table}} WHERE {_OF_GROUP} AND value IN ({_marks(values)})",  # noqa: S608
            [*group, *values],
        )
        for group, values in wanted.items()
    ]
    for dimension, grain, start, value in _answers(cursor, asked):
        known[Dimension(dimension), Grain(grain), start].add(value)
    return known


def _used(cursor: CursorWrapper, groups: Sequence[_Group]) -> dict[_Group, int]:
    """Count the values that have a rollup."""
    used = dict.fromkeys(groups, 0)
    asked = [
        (f"SELECT {_GROUP}, COUNT(*) FROM {{table}} WHERE {_OF_GROUP} GROUP BY {_GROUP}", list(group))  # noqa: S608
        for group in groups
    ]
    for dimension, grain, start, count in _answers(cursor, asked):
        used[Dimension(dimension), Grain(grain), start] = count
    return used


def _answers(cursor: CursorWrapper, asked: Sequence[tuple[str, Sequence[Any]]]) -> Iterable[tuple[Any, ...]]:
    """Ask several questions at once.

    Each walks the index by itself: a database that joined them might read the whole table.
    """
    table = connection.ops.quote_name(Rollup._meta.db_table)
    for start in range(0, len(asked), _AT_ONCE):
        part = asked[start : start + _AT_ONCE]
        statement = " UNION ALL ".join(question for question, _ in part).replace("{table}", table)
        cursor.execute(statement, _plain(value for _, values in part for value in values))
        yield from cursor.fetchall()


def _marks(values: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(values))


def _plain(values: Iterable[Any]) -> list[Any]:
    # A driver may know better than we what an enumeration is to the database.
    return [value.value if isinstance(value, Enum) else value for value in values]
