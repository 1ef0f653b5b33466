"""Charts: the numbers for the drawing and those of the table are the same, whatever the labels are."""

from __future__ import annotations

import json
import re

import pytest
from django.template.loader import render_to_string

from dispatch.pages.charts import Chart, Kind, Series, Tone, Unit, shown

HOSTILE = "</script><script>alert(1)</script>\n\x1b[31m" + "x" * 200


def test_what_is_drawn_stands_in_the_table_and_no_label_leaves_its_place():
    chart = Chart(
        "costs",
        Kind.BARS,
        "Cost <b>",
        [HOSTILE, "two"],
        [Series("a", [1.5, None], Tone.BAD), Series(HOSTILE, [0.01])],
        unit=Unit.DOLLARS,
        axis="Flow",
    )

    page = render_to_string("console/chart.html", {"chart": chart})

    (stored,) = re.findall(r'<script id="costs-data" type="application/json">(.*?)</script>', page, re.S)
    data = json.loads(stored)
    assert data["labels"] == chart.data["labels"]
    assert len(data["labels"][0]) == 80
    assert data["series"][0] == {"label": "a", "tone": "bad", "values": [1.5, None], "shown": ["$1.50", "—"]}
    assert [row.cells for row in chart.rows] == [("$1.50", "$0.0100"), ("—", "—")]
    assert page.count("<script") == 1
    assert "<b>" not in page
    assert 'role="img" aria-label=' in page
    for cell in ("$1.50", "$0.0100"):
        assert f'<td class="figure">{cell}</td>' in page


def test_nothing_to_draw_is_said_and_an_id_is_of_a_kind_that_can_stand_in_a_page():
    empty = Chart("none", Kind.LINES, "None", ["a"], [Series("x", [0]), Series("y", [None])])
    page = render_to_string("console/chart.html", {"chart": empty})
    assert "Nothing yet." in page
    assert "<canvas" not in page
    for wrong in ("", "A", "a b", 'a"', "1a", "a" * 41):
        with pytest.raises(ValueError, match="id of a chart"):
            Chart(wrong, Kind.LINES, "", [], [])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.COUNT, "—"),
        (1234567, Unit.COUNT, "1,234,567"),
        (12.5, Unit.DOLLARS, "$12.50"),
        (0.25, Unit.SECONDS, "0.2 s"),
        (3725, Unit.SECONDS, "1 h 2 min"),
        (99.6, Unit.PERCENT, "99.6 %"),
        (100 * (2107 / 2293), Unit.PERCENT, "91.9 %"),
        (100 * (1837 / 2000), Unit.PERCENT, "91.9 %"),
        (100 * (9999 / 10000), Unit.PERCENT, "99.9 %"),
        (100 * (1 / 10000), Unit.PERCENT, "0.1 %"),
        (100.0, Unit.PERCENT, "100 %"),
        (0.0, Unit.PERCENT, "0 %"),
    ],
)
def test_numbers_are_written_for_a_person(value, unit, text):
    assert shown(value, unit) == text
