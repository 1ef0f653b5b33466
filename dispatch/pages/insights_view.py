"""The figures of a span laid out for the insights page: cards, charts over time, and a table by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from dispatch.console.arguments import one_line
from dispatch.pages.charts import Chart, Kind, Number, Series, Tone, Unit, shown
from dispatch.pages.insights_asked import Asked, By
from runs.rollup_figures import Order
from runs.rollups import Part, Totals, together
from runs.walk import Facet
from runs.wording import OUTCOMES, amount, dollars, outcome_name, reason_sentence

#: How many values are drawn; the table has more.
MOST_DRAWN = 12
_LONGEST_NAME = 80
_MEDIAN, _SLOW = 0.5, 0.95

NAMES = {
    By.FLOW: "Flow",
    By.MODEL: "Model",
    By.TRIGGER: "Trigger",
    By.SCOPE: "Scope",
    By.HOST: "Host",
    By.KIND: "Kind",
    By.END: "Outcome and reason",
}
ORDERS = {
    Order.RUNS: "Runs",
    Order.FAILED: "Failed",
    Order.COST: "Cost",
    Order.TOKENS: "Tokens",
}
# By what the list of runs can be filtered, too.
_FACETS = {By.FLOW: Facet.FLOW, By.MODEL: Facet.MODEL, By.HOST: Facet.HOST, By.KIND: Facet.KIND}

Period = tuple[datetime, Totals]


@dataclass(frozen=True, slots=True)
class Card:
    """One figure of the span: what it is, how it is made up, and what it was before."""

    name: str
    value: str
    about: str
    before: str


@dataclass(frozen=True, slots=True)
class Line:
    """A value's line in the table; `filters` are the parameters that narrow the list of runs to it."""

    name: str
    about: str
    cells: tuple[str, ...]
    filters: dict[str, str] | None


HEADINGS = (
    *("Runs", "Completed", "Policy", "Failed", "Success"),
    *("Cost", "Tokens in", "Tokens out", "Duration p50", "Duration p95", "Waiting p50", "Waiting p95"),
)


def cards(now: Totals, before: Totals) -> list[Card]:
    """Lay out the figures of the whole span beside those of the one before it."""

    def card(name: str, write: Callable[[Totals], str], about: str) -> Card:
        return Card(name, write(now), about, write(before) if before.runs else "none")

    outcomes = f"{amount(now.completed)} completed, {amount(now.policy)} policy, {amount(now.failed)} failed"
    tokens = f"{amount(now.tokens_input)} in, {amount(now.tokens_output)} out"
    each = f"{dollars(now.cost / now.runs)} a run" if now.runs else ""
    return [
        card("Runs", lambda one: amount(one.runs), outcomes),
        card("Success", _success, "completed of completed and failed"),
        card("Cost", lambda one: dollars(one.cost), each),
        card("Tokens", lambda one: amount(one.tokens_total), tokens),
        card("Duration", lambda one: _seconds(one.took_at(_MEDIAN)), _slow(now.took_at(_SLOW))),
        card("Waiting", lambda one: _seconds(one.waited_at(_MEDIAN)), _slow(now.waited_at(_SLOW))),
    ]


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

    def chart(name: str, kind: Kind, title: str, unit: Unit, *series: Series) -> Chart:
        return Chart(name, kind, f"{title} per {each}", labels, series, unit, axis)

    def line(label: str, read: Callable[[Totals], Number], tone: Tone = Tone.PLAIN) -> Series:
        return Series(label, [read(totals) for _, totals in found], tone)

    return [
        chart("runs-by-time", Kind.COLUMNS, "Runs by outcome", Unit.COUNT, *_outcomes(line)),
        chart("cost-by-time", Kind.COLUMNS, "Cost", Unit.DOLLARS, line("Cost", lambda one: one.cost)),
        chart(
            "tokens-by-time",
            Kind.COLUMNS,
            "Tokens in and out",
            Unit.COUNT,
            line("In", lambda one: one.tokens_input),
            line("Out", lambda one: one.tokens_output),
        ),
        chart(
            "success-by-time",
            Kind.LINES,
            "Success",
            Unit.PERCENT,
            line("Success", lambda one: None if one.success is None else 100 * one.success, Tone.GOOD),
        ),
        chart(
            "duration-by-time",
            Kind.LINES,
            "Duration",
            Unit.SECONDS,
            line("p50", lambda one: one.took_at(_MEDIAN)),
            line("p95", lambda one: one.took_at(_SLOW)),
        ),
        chart(
            "waiting-by-time",
            Kind.LINES,
            "Waiting time",
            Unit.SECONDS,
            line("p50", lambda one: one.waited_at(_MEDIAN)),
            line("p95", lambda one: one.waited_at(_SLOW)),
        ),
    ]


def _outcomes(line: Callable[..., Series]) -> list[Series]:
    tones = (Tone.GOOD, Tone.WARN, Tone.BAD)
    return [
        line(name, lambda one, outcome=outcome: getattr(one, outcome), tone)
        for (outcome, name), tone in zip(OUTCOMES.items(), tones, strict=True)
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
        Order.TOKENS: (
            [bar("In", lambda one: one.tokens_input), bar("Out", lambda one: one.tokens_output)],
            Unit.COUNT,
        ),
    }[asked.order]
    name = NAMES[asked.by]
    title = f"{ORDERS[asked.order]} by {name.lower()}"
    if len(parts) > len(drawn):
        title += f", the {len(drawn)} greatest"
    return Chart(
        "parts", Kind.BARS, title, [name_of(part.value, asked.by) for part in drawn], series, unit, axis=name
    )


def lines(parts: Sequence[Part], asked: Asked) -> list[Line]:
    """Lay out the table."""
    return [
        Line(
            name_of(part.value, asked.by),
            _about(part.value, asked.by),
            _cells(part.totals),
            _filters(part, asked),
        )
        for part in parts
    ]


def name_of(value: str | None, by: By) -> str:
    """Name a value for a person; agents and peers wrote most of them."""
    if value is None:
        return "all others"
    if by is By.END:
        outcome, _, reason = value.partition("/")
        return f"{outcome_name(outcome)}, {reason}" if reason else outcome_name(outcome)
    return one_line(value)[:_LONGEST_NAME] or "none"


def _about(value: str | None, by: By) -> str:
    return reason_sentence((value or "").partition("/")[2]) if by is By.END else ""


def _filters(part: Part, asked: Asked) -> dict[str, str] | None:
    """Say what narrows the list of runs to those of a line; None where nothing does."""
    span = {"since": f"{asked.since:%Y-%m-%d %H:%M}", "until": f"{asked.until:%Y-%m-%d %H:%M}"}
    if not part.value:
        return None
    if asked.by is By.END:
        outcome, _, reason = part.value.partition("/")
        return {Facet.OUTCOME.value: outcome, **({Facet.REASON.value: reason} if reason else {}), **span}
    facet = _FACETS.get(asked.by)
    return None if facet is None else {facet.value: part.value, **span}


def _cells(one: Totals) -> tuple[str, ...]:
    counts = (one.runs, one.completed, one.policy, one.failed)
    spans = (one.took_at(_MEDIAN), one.took_at(_SLOW), one.waited_at(_MEDIAN), one.waited_at(_SLOW))
    return (
        *map(amount, counts),
        _success(one),
        dollars(one.cost),
        amount(one.tokens_input),
        amount(one.tokens_output),
        *map(_seconds, spans),
    )


def _success(one: Totals) -> str:
    # 99.96 % of a thousand runs is not all of them.
    return shown(None, Unit.PERCENT) if one.success is None else f"{int(one.success * 1000) / 10:g} %"


def _seconds(seconds: float | None) -> str:
    return shown(seconds, Unit.SECONDS)


def _slow(seconds: float | None) -> str:
    return f"median; p95 {_seconds(seconds)}" if seconds is not None else "median"
