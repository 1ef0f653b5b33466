"""The insights page's table: the figures of each value, under a name for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dispatch.console.arguments import one_line
from dispatch.pages.charts import Unit, shown
from dispatch.pages.insights_asked import Asked, By
from runs.rollup_figures import Order
from runs.rollup_totals import Part, Totals
from runs.wording import amount, dollars, outcome_name, reason_sentence

_LONGEST_NAME = 80
#: The shares that stand for what is usual and for what is slow.
MEDIAN, SLOW = 0.5, 0.95

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
# By these the list of runs can be filtered, too (`runs.walk.Facet`); there "-" is no reason.
LISTED_BY = (By.FLOW, By.MODEL, By.HOST, By.KIND)
_NO_REASON = "-"
HEADINGS = (
    *("Runs", "Completed", "Policy", "Failed", "Success"),
    *(
        "Cost",
        "Tokens in",
        "Tokens out",
        "Tokens cached",
        "Duration p50",
        "Duration p95",
        "Waiting p50",
        "Waiting p95",
    ),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A value's line in the table; `filters` are the parameters that narrow the list of runs to it."""

    name: str
    about: str
    cells: tuple[str, ...]
    filters: dict[str, str] | None


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
        return {"outcome": outcome, "reason": reason or _NO_REASON, **span}
    return {asked.by.value: part.value, **span} if asked.by in LISTED_BY else None


def _cells(one: Totals) -> tuple[str, ...]:
    counts = (one.runs, one.completed, one.policy, one.failed)
    spans = (one.took_at(MEDIAN), one.took_at(SLOW), one.waited_at(MEDIAN), one.waited_at(SLOW))
    return (
        *map(amount, counts),
        success(one),
        dollars(one.cost),
        amount(one.tokens_input),
        amount(one.tokens_output),
        amount(one.tokens_cached),
        *map(seconds, spans),
    )


def success(one: Totals) -> str:
    """Write the share that succeeded."""
    return shown(None if one.success is None else 100 * one.success, Unit.PERCENT)


def seconds(span: float | None) -> str:
    """Write how long something took."""
    return shown(span, Unit.SECONDS)
