"""The insights page's cards: the figures of a whole span beside those of the one before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dispatch.pages.insights_table import MEDIAN, SLOW, seconds, success
from runs.rollup_totals import Totals
from runs.wording import amount, dollars


@dataclass(frozen=True, slots=True)
class Card:
    """One figure of the span: what it is, how it is made up, and what it was before."""

    name: str
    value: str
    about: str
    before: str


def cards(now: Totals, before: Totals) -> list[Card]:
    """Lay out the figures of the whole span beside those of the one before it."""

    def card(name: str, write: Callable[[Totals], str], about: str) -> Card:
        return Card(name, write(now), about, write(before) if before.runs else "none")

    outcomes = f"{amount(now.completed)} completed, {amount(now.policy)} policy, {amount(now.failed)} failed"
    tokens = (
        f"{amount(now.tokens_input)} in, {amount(now.tokens_output)} out, {amount(now.tokens_cached)} cached"
    )
    each = f"{dollars(now.cost / now.runs)} a run" if now.runs else ""
    return [
        card("Runs", lambda one: amount(one.runs), outcomes),
        card("Success", success, "completed of completed and failed"),
        card("Cost", lambda one: dollars(one.cost), each),
        card("Tokens", lambda one: amount(one.tokens_total), tokens),
        card("Duration", lambda one: seconds(one.took_at(MEDIAN)), _slow(now.took_at(SLOW))),
        card("Waiting", lambda one: seconds(one.waited_at(MEDIAN)), _slow(now.waited_at(SLOW))),
    ]


def _slow(span: float | None) -> str:
    return f"median; p95 {seconds(span)}" if span is not None else "median"
