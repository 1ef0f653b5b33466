"""Questions to the rollups: what the fleet did in a span, whether it had a thousand runs or a million.

Spans are of whole hours, and of whole days where single hours are not kept any more (`rollup_periods`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from runs.models import Rollup, RollupState
from runs.rollup_figures import COLUMNS, Dimension, Order
from runs.rollup_periods import DAY, Grain, Stretch, ceil_hour, cover, floor_hour, hours_kept_from, instant
from runs.rollup_totals import OUTCOMES, totals_of
from runs.rollup_totals import Hour as Hour
from runs.rollup_totals import Lifetime as Lifetime
from runs.rollup_totals import Part as Part
from runs.rollup_totals import Totals as Totals
from runs.rollup_totals import together as together

_RANKED = {
    Order.RUNS: "SUM(completed + policy + failed)",
    Order.FAILED: "SUM(failed)",
    Order.COST: "SUM(cost_micros)",
    Order.TOKENS: "SUM(tokens_total)",
}
# A model that only helped another has no runs of its own.
_ANYTHING = "SUM(completed + policy + failed + cost_micros + tokens_total)"
_SUMS = ", ".join(f"SUM({column})" for column in COLUMNS)


def hours(since: datetime, until: datetime) -> list[Hour]:
    """Count the runs of each hour from the one of `since` up to `until`, hours without a run too."""
    first, end = floor_hour(since), ceil_hour(until)
    found = dict(_series(Grain.HOUR, first, end))
    return [
        Hour(instant(hour), *(getattr(found[hour], name) if hour in found else 0 for name in OUTCOMES))
        for hour in range(first, end)
    ]


def days(since: datetime, until: datetime) -> list[tuple[datetime, Totals]]:
    """Sum up each day from the one of `since` up to `until`, days without a run too."""
    return _filled(Grain.DAY, floor_hour(since) // DAY * DAY, ceil_hour(until), DAY)


def each_hour(since: datetime, until: datetime) -> list[tuple[datetime, Totals]]:
    """Sum up each hour from the one of `since` up to `until`, hours without a run too."""
    return _filled(Grain.HOUR, floor_hour(since), ceil_hour(until), 1)


def totals(since: datetime, until: datetime) -> Totals:
    """Sum up the runs that ended in a span."""
    (row,) = _rows(_SUMS, Dimension.TOTAL, _cover(since, until))
    return totals_of(row)


def parts(
    dimension: Dimension, since: datetime, until: datetime, *, by: Order = Order.RUNS, most: int = 50
) -> list[Part]:
    """Sum up the runs of a span by value: the `most` greatest, and what is left as one more."""
    stretches = _cover(since, until)
    tail = f" GROUP BY value, rest HAVING {_ANYTHING} > 0"
    tail += f" ORDER BY rest, {_RANKED[by]} DESC, value LIMIT {int(most)}"
    found = list(_rows(f"value, rest, {_SUMS}", dimension, stretches, tail))
    shown = [row for row in found if not row[1]]
    # Every run has one value in each dimension, and what it used has one model.
    (whole,) = _rows(_SUMS, Dimension.TOTAL, stretches)
    columns = zip(whole, *(row[2:] for row in shown), strict=True)
    left = [max(0, (all_of or 0) - sum(amount or 0 for amount in of_part)) for all_of, *of_part in columns]
    named = [Part(value, totals_of(row)) for value, _, *row in shown]
    rest = totals_of(left)
    return [*named, Part(None, rest)] if rest.runs or rest.cost or rest.tokens_total else named


def lifetime() -> Lifetime:
    """Sum up every run that ever ended."""
    ever = [Stretch(Grain.EVER, 0, 1)]
    (row,) = _rows(_SUMS, Dimension.TOTAL, ever)
    jobs: dict[tuple[str, str | None], int] = {}
    for value, rest, count in _rows(f"value, rest, {_RANKED[Order.RUNS]}", Dimension.END, ever, _BY_VALUE):
        outcome, _, reason = ("other", "", "other") if rest else value.partition("/")
        jobs[outcome, reason or None] = count
    return Lifetime(jobs, totals_of(row))


def recounted_from() -> datetime | None:
    """Tell from which instant on every run has been counted; None when all have been."""
    before = RollupState.objects.values_list("recount_before", flat=True).first()
    # Beyond every calendar: no day has been counted yet.
    return None if before is None else instant(min(before, _LATEST))


_BY_VALUE = " GROUP BY value, rest"
_LATEST = floor_hour(datetime(9999, 12, 31, tzinfo=UTC))


def _filled(grain: Grain, first: int, end: int, step: int) -> list[tuple[datetime, Totals]]:
    found = dict(_series(grain, first, end))
    nothing = totals_of([0] * len(COLUMNS))
    return [(instant(hour), found.get(hour, nothing)) for hour in range(first, end, step)]


def _series(grain: Grain, first: int, end: int) -> Iterator[tuple[int, Totals]]:
    stretch = Stretch(grain, first, end)
    for start, *row in _rows(f"start, {_SUMS}", Dimension.TOTAL, [stretch], " GROUP BY start"):
        yield start, totals_of(row)


def _cover(since: datetime, until: datetime) -> list[Stretch]:
    kept = hours_kept_from(datetime.now(UTC))
    return cover(floor_hour(since), ceil_hour(until), hours_from=kept) or [Stretch(Grain.HOUR, 0, 0)]


def _rows(
    wanted: str, dimension: Dimension, stretches: Sequence[Stretch], tail: str = ""
) -> list[tuple[Any, ...]]:
    table = connection.ops.quote_name(Rollup._meta.db_table)
    # One walk along the index for each: a database that chose for itself might walk it all.
    one = f"SELECT * FROM {table} WHERE dimension = %s AND grain = %s AND start >= %s AND start < %s"  # noqa: S608
    values = [
        value
        for stretch in stretches
        for value in (dimension.value, int(stretch.grain), stretch.start, stretch.end)
    ]
    with connection.cursor() as cursor:
        source = " UNION ALL ".join([one] * len(stretches))
        cursor.execute(f"SELECT {wanted} FROM ({source}) AS periods{tail}", values)  # noqa: S608
        return list(cursor.fetchall())
