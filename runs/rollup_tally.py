"""What the rollups gain and lose: runs are tallied by hour, and hours make up the longer periods."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from runs.rollup_figures import Dimension, Figures, add, contributions
from runs.rollup_periods import Grain, hour_of, periods_of

_EVER_BY = (Dimension.TOTAL, Dimension.END)


class Key(NamedTuple):
    """What a rollup is of; `rest`: all values that found no place of their own."""

    grain: Grain
    start: int
    dimension: Dimension
    value: str
    rest: bool = False


Tally = dict[Key, Figures]


def count(tally: Tally, run: Mapping[str, Any], *, times: int = 1) -> None:
    """Count a run in its hour; with `times` -1 take it away."""
    hour = hour_of(run["position"])
    for dimension, value, figures in contributions(run):
        add(tally.setdefault(Key(Grain.HOUR, hour, dimension, value), {}), figures, times=times)


def count_ever(tally: Tally, run: Mapping[str, Any]) -> None:
    """Count a run among all there ever were."""
    for dimension, value, figures in contributions(run):
        if dimension in _EVER_BY:
            add(tally.setdefault(Key(Grain.EVER, 0, dimension, value), {}), figures)


def widened(tally: Tally, grains: Collection[Grain]) -> Tally:
    """Give what stands for hours to their longer periods, too; `grains` are those to be answered."""
    found: Tally = {}
    for key, figures in tally.items():
        periods = periods_of(key.start) if key.grain == Grain.HOUR else ((key.grain, key.start),)
        for grain, start in periods:
            if grain in grains:
                add(found.setdefault(key._replace(grain=grain, start=start), {}), figures)
    return found


def difference(fresh: Tally, stored: Tally) -> Tally:
    """Say what makes the fresh days and hours of the stored ones, and what that is for longer periods.

    What there ever was does not get less.
    """
    found: Tally = {}
    for tally, times in ((fresh, 1), (stored, -1)):
        for key, figures in tally.items():
            add(found.setdefault(key, {}), figures, times=times)
    wider: Tally = {}
    for key, figures in found.items():
        if key.grain != Grain.DAY:
            continue
        month = dict(periods_of(key.start))[Grain.MONTH]
        add(wider.setdefault(key._replace(grain=Grain.MONTH, start=month), {}), figures)
        if key.dimension in _EVER_BY:
            more = {column: amount for column, amount in figures.items() if amount > 0}
            add(wider.setdefault(key._replace(grain=Grain.EVER, start=0), {}), more)
    return found | wider
