"""The insights page's charts: a span along time, and its greatest values side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from dispatch.pages.charts import Chart, Kind, Number, Series, Tone, Unit
from dispatch.pages.insights_asked import Asked
from dispatch.pages.insights_table import MEDIAN, NAMES, ORDERS, SLOW, name_of
from runs.rollup_figures import Order
from runs.rollup_totals import Part, Totals, together
from runs.wording import OUTCOMES

#: How many values are drawn; the table has more.
MOST_DRAWN = 12

Period = tuple[datetime, Totals]


def periods(series: Sequence[Period], asked: Asked) -> list[Period]:
    """Put days together to weeks where there are many; each begins on a Monday but for the first."""
    if not asked.is_weekly:
        return list(series)
    weeks = groupby(series, key=lambda day: day[0].date() - timedelta(days=day[0].weekday()))
    found = [list(days) for _, days in weeks]
    return [(days[0][0], together(totals for _, totals in days)) for days in found]


def charts(found: Sequence[Period], asked: Asked) -> list[Chart]:
    """Draw the span along time."""
    each = "hour" if asked.is_hourly else "week" if asked.is_weekly else "day"
    form = "%m-%d %H:%M" if asked.is_hourly else "%Y-%m-%d" if asked.is_weekly else "%m-%d"
    labels = [f"{start:{form}}" for start, _ in found]
    axis = "Hour from (UTC)" if asked.is_hourly else f"{each.capitalize()} from (UTC)"

    def line(label: str, read: Callable[[Totals], Number], tone: Tone = Tone.PLAIN) -> Series:
        return Series(label, [read(totals) for _, totals in found], tone)

    return [
        Chart(f"{name}-by-time", kind, f"{title} per {each}", labels, series, unit, axis)
        for name, kind, title, unit, series in _drawn(line)
    ]


def _drawn(line: Callable[..., Series]) -> Iterator[tuple[str, Kind, str, Unit, Sequence[Series]]]:
    """Give each chart's name, kind, title and unit, with its series as `line` makes them."""
    yield "runs", Kind.COLUMNS, "Runs by outcome", Unit.COUNT, _outcomes(line)
    yield "cost", Kind.COLUMNS, "Cost", Unit.DOLLARS, [line("Cost", lambda one: one.cost)]
    yield "tokens", Kind.COLUMNS, "Tokens in, out and cached", Unit.COUNT, _tokens(line)
    success = line("Success", lambda one: None if one.success is None else 100 * one.success, Tone.GOOD)
    yield "success", Kind.LINES, "Success", Unit.PERCENT, [success]
    took = [line("p50", lambda one: one.took_at(MEDIAN)), line("p95", lambda one: one.took_at(SLOW))]
    yield "duration", Kind.LINES, "Duration", Unit.SECONDS, took
    waited = [line("p50", lambda one: one.waited_at(MEDIAN)), line("p95", lambda one: one.waited_at(SLOW))]
    yield "waiting", Kind.LINES, "Waiting time", Unit.SECONDS, waited


def _outcomes(line: Callable[..., Series]) -> list[Series]:
    tones = (Tone.GOOD, Tone.WARN, Tone.BAD)
    return [
        line(name, lambda one, outcome=outcome: getattr(one, outcome), tone)
        for (outcome, name), tone in zip(OUTCOMES.items(), tones, strict=True)
    ]


def _tokens(line: Callable[..., Series]) -> list[Series]:
    """Part the total, so that stacked they are it."""
    return [
        line("In", lambda one: one.tokens_input),
        line("Out", lambda one: one.tokens_output),
        line("Cached", lambda one: one.tokens_cached),
    ]


def part_chart(parts: Sequence[Part], asked: Asked) -> Chart:
    """Draw the greatest values side by side, by what they are ordered by; the table has the rest."""
    # All the others together would dwarf each.
    drawn = [part for part in parts if part.value is not None][:MOST_DRAWN]

    def bar(label: str, read: Callable[[Totals], Number], tone: Tone = Tone.PLAIN) -> Series:
        return Series(label, [read(part.totals) for part in drawn], tone)

    series, unit = {
        Order.RUNS: (_outcomes(bar), Unit.COUNT),
        Order.FAILED: ([bar("Failed", lambda one: one.failed, Tone.BAD)], Unit.COUNT),
        Order.COST: ([bar("Cost", lambda one: one.cost)], Unit.DOLLARS),
        Order.TOKENS: (_tokens(bar), Unit.COUNT),
    }[asked.order]
    name = NAMES[asked.by]
    title = f"{ORDERS[asked.order]} by {name.lower()}"
    if len(parts) > len(drawn):
        title += f", the {len(drawn)} greatest"
    return Chart(
        "parts", Kind.BARS, title, [name_of(part.value, asked.by) for part in drawn], series, unit, axis=name
    )
