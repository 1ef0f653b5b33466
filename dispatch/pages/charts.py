"""What a chart shows: the numbers, once for the drawing and once for the table beside it.

`static/console/charts.js` draws. A page includes `console/chart.html` with `chart`, and
`console/chart_head.html` in its block `extrahead`. Whoever has no scripts or does not see the drawing has the
table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.instants import span
from runs.wording import ABSENT, amount, dollars

Number = int | float | None

_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")
_LONGEST_LABEL = 80


class Kind(StrEnum):
    """How it is drawn: columns or horizontal bars (both stacked), or lines."""

    COLUMNS = "columns"
    BARS = "bars"
    LINES = "lines"


class Unit(StrEnum):
    """What is counted. Instants and spans come as seconds, shares as 0 to 100."""

    COUNT = "count"
    DOLLARS = "dollars"
    SECONDS = "seconds"
    PERCENT = "percent"


class Tone(StrEnum):
    """What a series means; a plain one takes the next colour."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Series:
    """One row of numbers, a number for each label; None where there is none."""

    label: str
    values: Sequence[Number]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    label: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a page.

    `id` is unique on the page, of lower-case letters, digits and hyphens; `axis` says what the labels are
    ("Hour", "Flow"). Labels may be anything that a peer or an agent wrote. ValueError for another `id`.
    """

    id: str
    kind: Kind
    title: str
    labels: Sequence[str]
    series: Sequence[Series]
    unit: Unit = Unit.COUNT
    axis: str = "Name"

    def __post_init__(self) -> None:
        """Refuse an id that could not stand in a page."""
        if not _ID.fullmatch(self.id):
            raise ValueError("the id of a chart is of lower-case letters, digits and hyphens")

    @property
    def data_id(self) -> str:
        """Name the element that holds the numbers for the drawing."""
        return f"{self.id}-data"

    @property
    def data(self) -> dict[str, Any]:
        """Give what the drawing needs, as JSON values: numbers, and how each is written."""
        return {
            "kind": self.kind.value,
            "unit": self.unit.value,
            "axis": self.axis,
            "labels": [_label(label) for label in self.labels],
            "series": [
                {
                    "label": _label(one.label),
                    "tone": one.tone.value,
                    "values": list(one.values),
                    "shown": [shown(value, self.unit) for value in one.values],
                }
                for one in self.series
            ],
        }

    @property
    def headings(self) -> list[str]:
        """Name the columns of the table after the first."""
        return [_label(one.label) for one in self.series]

    @property
    def rows(self) -> list[Row]:
        """Lay out the table: a line for each label."""
        columns: Iterable[tuple[Number, ...]] = zip_longest(*(one.values for one in self.series))
        lines = zip_longest(self.labels, columns, fillvalue=None)
        return [
            Row(_label(label or ""), tuple(shown(value, self.unit) for value in values or ()))
            for label, values in lines
        ]

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to draw."""
        return not any(value for one in self.series for value in one.values)


def shown(value: Number, unit: Unit) -> str:
    """Write a number for a person."""
    if value is None:
        return ABSENT
    match unit:
        case Unit.DOLLARS:
            return dollars(value)
        case Unit.SECONDS:
            return span(round(value * 1000)) if value >= 1 else f"{value:.1f} s"
        case Unit.PERCENT:
            return _percent(value)
        case _:
            return amount(value)


def _percent(value: float) -> str:
    """Write a share to the nearest tenth: all only where it is all, none only where it is none."""
    # What is no more than the error of a division is no part of the share.
    tenths = int(round(value * 10, 5) + 0.5)
    return f"{min(max(tenths, int(value > 0)), 1000 - int(value < 100)) / 10:g} %"


def _label(text: str) -> str:
    return one_line(text)[:_LONGEST_LABEL]
