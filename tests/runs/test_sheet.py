"""What the page of a run says of where it came from."""

from __future__ import annotations

import pytest

from runs import sheet
from runs.models import Run


@pytest.mark.parametrize(
    ("job_id", "told"),
    [
        ("repeat:nightly:1700000000000", ("nightly", "")),
        ("manual:night:ly:1700000000000", ("night:ly", "started by hand")),
        ("local-0123456789abcdef", None),
        ("repeat:1700000000000", None),
        ("gh-repeat:a:1", None),
    ],
)
def test_the_schedule_of_a_job_is_named(job_id, told):
    lines = [line for section in sheet.sections(Run(job_id=job_id)) for line in section.lines]

    found = [(line.value, line.note) for line in lines if line.name == "Schedule"]
    assert found == ([told] if told else [])
