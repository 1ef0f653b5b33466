"""Tables of the console: on a telephone each row is an entry, whose cells say what they stand under."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dispatch.templatetags.console_tables import under

ROOT = Path(__file__).parents[3]
#: Their few columns fit side by side.
NARROW = {"chart.html", "change.html"}
TABLES = {
    f"{path.name} {number}": table
    for app in ("dispatch", "runs")
    for path in sorted((ROOT / app / "templates").rglob("*.html"))
    for number, table in enumerate(re.findall(r"<table.*?</table>", path.read_text(), re.DOTALL), 1)
    if path.name not in NARROW
}
_TAG = r"{%.*?%}"
_LABEL = re.compile(rf'data-label="((?:{_TAG}|[^"])*)"')
_HEADING = re.compile(rf"<th scope=\"col\"(?:{_TAG}|[^>])*>(.*?)</th>")


def words(found):
    """The texts among what a template decides by, without what it puts in."""
    return {text for one in found for text in re.split(_TAG, one) if text and "{{" not in text}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_no_column_is_off_the_screen_of_a_telephone_and_each_cell_names_its_own(table):
    assert "console-stacked" in table.partition(">")[0]
    labels = _LABEL.findall(table)
    assert labels
    assert words(labels) <= words(_HEADING.findall(table))


def test_a_cell_beyond_the_last_heading_is_shown_without_one():
    assert under(("alpha", "7"), ["Host"]) == [("alpha", "Host"), ("7", "")]


@pytest.mark.parametrize(
    ("template", "style"),
    [
        ("dispatch/templates/console/queue.html", "dispatch/static/console/queue.css"),
        ("dispatch/templates/console/log.html", "dispatch/static/console/log.css"),
        ("runs/templates/admin/runs/run/change_list.html", "runs/static/runs/runs.css"),
    ],
)
def test_what_a_pages_style_says_of_stacked_rows_begins_at_the_width_at_which_they_stack(template, style):
    (below,) = re.findall(r"{% block stacks_below %}(\d+){%", (ROOT / template).read_text())

    assert f"@media (max-width: {below}px)" in (ROOT / style).read_text()
