"""`triggers.json` means what it means to the reference, but where we mean to differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dispatch.operator_files.problems import OperatorFileError
from dispatch.triggers.entries import wire
from dispatch.triggers.parse import parse

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "triggers.json").read_text())["cases"]
# Decided against the reference; each is taken where the vector refuses it, and refused where it takes it.
DEVIATIONS = {
    "cron-pattern-013": "issue 5, 2: `@daily` and the like",
    "cron-pattern-014": "issue 5, 2: a pattern that can never fire is refused at load",
    "cron-accepted-002": "Q 5.1 ⚑: `repository` on cron",
    "pr-review-013": "Q 5.1 ⚑: `reviewState` on a label rule",
}
# Of later versions (Q 17, tool exclusion), and not asked for.
NEWER = [case["name"] for case in CASES if case.get("newer")]


def kept(case):
    given = case["in"]
    content = given["text"] if "text" in given else json.dumps(given["file"])
    try:
        return [wire(entry) for entry in parse(content.encode(), name="triggers.json").entries]
    except OperatorFileError:
        return None


def test_no_case_is_left_out():
    assert len(CASES) == 351
    assert {case["name"] for case in CASES} >= set(DEVIATIONS)
    assert len(NEWER) == 8
    assert all(name.startswith("exclude-tools-") for name in NEWER)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in CASES if case["name"] not in NEWER]
)
def test_a_file_is_taken_or_refused(case):
    out, found = case["out"], kept(case)

    assert (found is not None) == (out["accept"] is not (case["name"] in DEVIATIONS))
    if found is not None and "entries" in out:
        assert found == out["entries"]
