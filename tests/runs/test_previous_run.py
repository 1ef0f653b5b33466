from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runs.files import Entry, RecordFiles
from runs.outcome import Outcome
from runs.previous_run import previous_record, previous_run
from runs.record import Record

CASES = json.loads((Path(__file__).parents[1] / "vectors/run-history.json").read_text())["cases"]
PREVIOUS = [case for case in CASES if case["in"]["op"] == "previous"]
NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)


@pytest.mark.parametrize("case", PREVIOUS, ids=lambda case: case["name"])
def test_vectors(case):
    given = case["in"]

    found = previous_record(given["names"], given["schedule"], given["before"])

    assert (found[0] if found else None) == case["out"]["file"]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ({}, None),
        ({"repeat:a:100": {"ended_at": NIGHT}}, NIGHT),
        ({"repeat:a:100": {"started_at": NIGHT}}, NIGHT),
        ({"repeat:a:200": {"ended_at": NIGHT}}, None),
        ({"repeat:b:100": {"ended_at": NIGHT}}, None),
        # Another id with the same stem.
        ({"repeat_a_100": {"ended_at": NIGHT}}, None),
    ],
)
def test_the_end_else_the_start_of_the_run_before_counts(tmp_path, kept, expected):
    files = RecordFiles(tmp_path)
    records = [
        Record(job_id=job_id, kind="local", attempt=0, outcome=Outcome.COMPLETED, **instants)
        for job_id, instants in kept.items()
    ]
    assert files.write([Entry(one, one.to_bytes()) for one in records]) == [None] * len(records)

    assert previous_run(files, "a", 200) == expected


def test_without_a_folder_nothing_is_known(tmp_path):
    assert previous_run(RecordFiles(tmp_path / "none"), "a", 200) is None
