"""A change in two steps: the difference apart, the lock, and what a request asks for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.test import RequestFactory

import dispatch
from dispatch.console.trigger_changes import difference
from dispatch.pages import change
from dispatch.pages.change import ChangedMeanwhileError, lines_of, lock_of, require_same


def of(entries):
    return json.dumps({"triggers": entries}, indent=2).encode() + b"\n"


def test_a_difference_is_told_line_by_line_without_its_head():
    found = list(lines_of(difference(of(["--- a"]), of(["+++ b"]), name="x")))

    assert [(one.kind, one.text.strip()) for one in found] == [
        ("place", "@@ -1,5 +1,5 @@"),
        ("same", "{"),
        ("same", '"triggers": ['),
        ("removed", '"--- a"'),
        ("added", '"+++ b"'),
        ("same", "]"),
        ("same", "}"),
    ]


def test_the_way_out_of_a_page_that_asks_is_called_the_same_everywhere():
    pages = (Path(dispatch.__file__).parent / "templates").rglob("*.html")
    asking = [text for text in (page.read_text() for page in pages) if 'method="post"' in text]
    ways_out = re.findall(r"</button>(?:{% endif %})?\s*<a [^\n]*>([^<]*)</a>", "\n".join(asking))

    assert {way for way in ways_out if not way.startswith("Back to the ")} == {"Change nothing"}
    assert len(ways_out) >= 8


@pytest.mark.parametrize(
    ("now", "is_same"),
    [({"a": 1, "b": [2]}, True), ({"a": True, "b": [2]}, False), ({"a": 1}, False), (None, False)],
)
def test_a_file_that_means_something_else_is_told_apart(now, is_same):
    lock = lock_of(json.loads('{"a":   1, "b": [2]}'))

    if is_same:
        require_same(now, lock, what="file")
    else:
        with pytest.raises(ChangedMeanwhileError, match="file was changed meanwhile"):
            require_same(now, lock, what="file")


@pytest.mark.parametrize("asked", ["write", "back", "show", "nonsense", None])
def test_only_a_known_step_writes_and_a_reason_is_one_short_line(asked):
    sent = {"reason": "why\n\x1b[31m" + "x" * 9999} | ({"step": asked} if asked else {})
    request = RequestFactory().post("/", sent)

    assert change.step_of(request) == (asked if asked in {"write", "back"} else "show")
    assert change.reason_of(request).startswith("why [31mx")
    assert len(change.reason_of(request)) <= 500
