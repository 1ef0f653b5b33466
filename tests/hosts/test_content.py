from __future__ import annotations

import json
from pathlib import Path

import pytest

from hosts import content

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "registry-content.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vectors(case):
    text = content.text_of(case["in"]["value"])
    reason = content.refusal(text)

    assert case["out"] == ({"stored": True, "value": text} if reason is None else {"stored": False})
    assert reason in (None, "path-shaped")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("/", "path-shaped"),
        ("//srv/share", "path-shaped"),
        ("a\nb\\c", "path-shaped"),
        ("", None),
        ("é" * 2048, None),
        ("é" * 2048 + "x", "too-long"),
        ("\ud800" * 4096, None),
    ],
)
def test_what_is_refused(text, reason):
    assert content.refusal(text) == reason


def test_a_place_that_is_no_text_is_refused_as_one():
    assert content.refusal(content.text_of(Path("/srv/x"))) == "path-shaped"
