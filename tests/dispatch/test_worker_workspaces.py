from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dispatch.jobs import CronTrigger, JobData, Kind
from dispatch.worker.workspaces import prepare_local
from runs.workspace import event
from runs.workspace.event import Occurrence, Source

EARLIER = datetime(2026, 3, 1, tzinfo=UTC)
NIGHTLY = CronTrigger(id="nightly", pattern="0 3 * * *")
SHOWN = event.CronTrigger(id="nightly", pattern="0 3 * * *")
FIRED = Occurrence(scheduled_for=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), previous_run_at=EARLIER)
UNKNOWN = Occurrence(scheduled_for=None, previous_run_at=None)


@pytest.mark.parametrize(
    ("job_id", "fields", "source", "trigger", "occurrence"),
    [
        ("local-1", {}, Source.MANUAL, None, None),
        ("chain-1", {"parent_job_id": "local-1", "chain_depth": 1}, Source.CHAIN, None, None),
        ("repeat:nightly:1000", {"trigger": NIGHTLY}, Source.CRON, SHOWN, FIRED),
        (
            "repeat:nightly:x",
            {"trigger": NIGHTLY},
            Source.CRON,
            SHOWN,
            Occurrence(scheduled_for=None, previous_run_at=None),
        ),
        ("manual:nightly:1000", {"trigger": NIGHTLY}, Source.MANUAL, SHOWN, None),
        # No schedule of ours: whoever wrote the job chose its id.
        ("repeat:nightly:1000", {}, Source.MANUAL, None, None),
    ],
)
def test_a_job_is_told_who_asked_for_it(job_id, fields, source, trigger, occurrence):
    asked = []
    earlier = {("nightly", 1000): EARLIER}

    prepare_local(
        job_id,
        JobData(kind=Kind.LOCAL, folder="/srv/a", task="t", **fields),
        prepare=asked.append,
        previous_run=lambda *given: earlier[given],
    )

    (told,) = asked
    assert (told.source, told.trigger, told.occurrence) == (source, trigger, occurrence)
