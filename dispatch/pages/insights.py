"""What the fleet's runs came to over a span, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.pages import insights_cards as cards
from dispatch.pages import insights_charts as charts
from dispatch.pages import insights_table as table
from dispatch.pages.access import Access, page
from dispatch.pages.frame import render
from dispatch.pages.insights_asked import Asked, Span, read
from runs import fleet_notice, rollups
from runs.wording import moment


@dataclass(frozen=True, slots=True)
class Link:
    """One of several choices."""

    label: str
    url: str
    is_here: bool


T = TypeVar("T", bound=StrEnum)

# Where the calendar ends.
_NO_YEAR = 9999
_SPANS = {
    Span.DAY: "24 hours",
    Span.WEEK: "7 days",
    Span.MONTH: "30 days",
    Span.QUARTER: "90 days",
    Span.YEAR: "400 days",
}


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show a span: all of it, along time, and by value."""
    asked = read(request.GET.dict(), datetime.now(UTC))
    series = rollups.each_hour if asked.is_hourly else rollups.days
    found = series(asked.since, asked.until)
    parts = rollups.parts(asked.by.dimension, asked.since, asked.until, by=asked.order)
    now = rollups.together(totals for _, totals in found)
    context = {
        "asked": asked,
        "spans": _links("span", _SPANS, asked, asked.span),
        "dimensions": _links("by", table.NAMES, asked, asked.by),
        "orders": _links("order", table.ORDERS, asked, asked.order),
        "cards": cards.cards(now, rollups.totals(*asked.before)),
        "charts": charts.charts(charts.periods(found, asked), asked),
        "part_chart": charts.part_chart(parts, asked),
        "headings": table.HEADINGS,
        "lines": _lines(request, parts, asked),
        "dimension": table.NAMES[asked.by],
        "is_empty": not now.runs,
        "notices": _notices(),
    }
    return render(request, "insights.html", "Insights", context)


def _lines(request: HttpRequest, parts: list[rollups.Part], asked: Asked) -> list[tuple[table.Line, str]]:
    """Pair each line with the address of its runs; blank where there is none, or they may not be seen."""
    listed = reverse("admin:runs_run_changelist") if request.user.has_perm("runs.view_run") else ""
    return [
        (line, f"{listed}?{urlencode(line.filters)}" if listed and line.filters else "")
        for line in table.lines(parts, asked)
    ]


def _links(name: str, labels: Mapping[T, str], asked: Asked, here: StrEnum | None) -> list[Link]:
    """Make the addresses of the same question with another choice."""
    kept = asked.parameters
    place = "#by"
    if name == "span":
        kept = {key: value for key, value in kept.items() if key not in ("from", "to")}
        place = ""
    return [
        Link(label, f"?{urlencode({**kept, name: choice.value})}{place}", choice is here)
        for choice, label in labels.items()
    ]


def _notices() -> list[str]:
    """Say what the figures lack."""
    since = rollups.recounted_from()
    if since is None:
        counting = ""
    elif since.year == _NO_YEAR:
        counting = "No run has been counted yet: the worker does it at its start."
    else:
        counting = (
            f"Runs before {moment(since)} UTC have not been counted yet: the worker does it at its start."
        )
    return [notice for notice in (fleet_notice.viewed(), counting) if notice]
