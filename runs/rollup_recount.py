"""Counts runs anew from the run table, a day at a time, the latest first: after an update or a rebuild.

What it has still to do stands in the database: whoever goes on, goes on where the last one ended.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction

from pidispatch_site.log import event
from runs import rollup_store, rollup_writing
from runs.models import Rollup, RollupState, Run
from runs.outcome import Outcome
from runs.rollup_figures import COLUMNS, NEEDED, Dimension
from runs.rollup_periods import (
    DAY,
    Grain,
    floor_day,
    floor_hour,
    hour_of,
    hours_kept_from,
    position_of,
)
from runs.rollup_tally import Key, Tally, count, difference, widened

#: Beyond every day that a run can have ended on.
ALL = 2**40


def ask() -> None:
    """Have everything counted anew; `finish` does it."""
    with transaction.atomic(), connection.cursor() as cursor:
        rollup_writing.lock(cursor)
        _keep(recount_before=ALL)


def finish(now: datetime) -> int:
    """Count anew what is to be; answer how many days that were. Raises Django's DatabaseError."""
    recounted = 0
    while _next_day(hours_kept_from(now)):
        recounted += 1
    if recounted:
        event("rollups_recounted", days=recounted)
    return recounted


def rows_removed(before: datetime) -> None:
    """Note that rows of runs that ended before the instant are about to be removed: they stay counted."""
    hour = floor_day(floor_hour(before)) + DAY
    with transaction.atomic(), connection.cursor() as cursor:
        rollup_writing.lock(cursor)
        if hour > _state().complete_from:
            _keep(complete_from=hour)


def forget_hours(now: datetime) -> None:
    """Remove single hours that are older than they are kept; their days have them."""
    Rollup.objects.filter(grain=Grain.HOUR, start__lt=hours_kept_from(now)).delete()


def _next_day(hours_from: int) -> bool:
    """Count the next day, if there is one, in a transaction of its own."""
    with transaction.atomic(), connection.cursor() as cursor:
        rollup_writing.lock(cursor)
        state = _state()
        if state.recount_before is None:
            return False
        day = _latest_day(state.recount_before)
        _keep(recount_before=day)
        if day is None:
            return False
        fresh, stored = _from_rows(day, hours_from), _stored(day, hours_from)
        if day >= state.complete_from or _runs(fresh, day) > _runs(stored, day):
            rollup_store.add_up(cursor, difference(fresh, stored))
    return True


def _latest_day(before: int) -> int | None:
    """Find the latest day before the hour that has runs, or is said to have."""
    # Beyond what the column of positions could hold there is no run.
    ends = position_of(before) if before < ALL else 2**62
    position = (
        Run.objects.filter(position__lt=ends).order_by("-position").values_list("position", flat=True).first()
    )
    counted = Rollup.objects.filter(dimension=Dimension.TOTAL, grain=Grain.DAY, start__lt=before)
    started = counted.order_by("-start").values_list("start", flat=True).first()
    days = [floor_day(hour_of(position))] if position is not None else []
    return max([*days, *([started] if started is not None else [])], default=None)


def _grains(day: int, hours_from: int) -> list[Grain]:
    return [Grain.DAY, Grain.HOUR] if day >= hours_from else [Grain.DAY]


def _from_rows(day: int, hours_from: int) -> Tally:
    tally: Tally = {}
    rows = Run.objects.filter(position__gte=position_of(day), position__lt=position_of(day + DAY), final=True)
    for row in rows.values(*NEEDED).iterator(chunk_size=500):
        count(tally, row)
    return widened(tally, _grains(day, hours_from))


def _stored(day: int, hours_from: int) -> Tally:
    """Read what is counted of the day: by the day itself, and by those of its hours that are kept."""
    tally: Tally = {}
    found = Rollup.objects.filter(
        dimension__in=list(Dimension),
        grain__in=_grains(day, hours_from),
        start__gte=day,
        start__lt=day + DAY,
    )
    for grain, start, dimension, value, rest, *figures in found.values_list(*Key._fields, *COLUMNS):
        key = Key(Grain(grain), start, Dimension(dimension), value, rest)
        tally[key] = {name: figure for name, figure in zip(COLUMNS, figures, strict=True) if figure}
    return tally


def _runs(tally: Tally, day: int) -> int:
    figures = tally.get(Key(Grain.DAY, day, Dimension.TOTAL, ""), {})
    return sum(figures.get(outcome, 0) for outcome in Outcome)


def _state() -> RollupState:
    return RollupState.objects.first() or RollupState()


def _keep(**values: int | None) -> None:
    if not RollupState.objects.update(**values):
        RollupState.objects.create(**values)
