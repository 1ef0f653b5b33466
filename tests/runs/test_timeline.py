from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings

from runs.models import Run
from runs.outcome import Outcome
from runs.record import Attempt, Record
from runs.rows import columns_of
from runs.timeline import BAR_WIDTH, timeline
from tests.harness.records import NOON, a_record, records

MINUTE = timedelta(minutes=1)


def of(record: Record):
    return timeline(Run(**columns_of(record)))


def test_a_plain_run_is_queued_started_and_ended():
    told = of(a_record(queued_at=NOON, started_at=NOON + MINUTE, ended_at=NOON + 4 * MINUTE))

    assert [(one.what, one.note, one.mark) for one in told.events] == [
        ("Queued", "", "queued"),
        ("Started", "after waiting 1 min 0 s", "started"),
        ("Ended: completed", "after 3 min 0 s", "completed"),
    ]
    assert told.events[0].at == "2026-01-05 12:00:00 UTC"
    assert [(one.start, one.width, one.mark) for one in told.bar] == [
        (0, 250, "waiting"),
        (250, 750, "completed"),
    ]
    assert told.total == "4 min 0 s"


def test_each_attempt_has_its_part_and_the_pause_before_it():
    earlier = Attempt(
        started_at=NOON + MINUTE, ended_at=NOON + 2 * MINUTE, outcome=Outcome.FAILED, reason="stalled"
    )
    run = {"queued_at": NOON, "started_at": NOON + 3 * MINUTE, "ended_at": NOON + 4 * MINUTE}
    told = of(a_record(**run, attempt=1, attempts=(earlier,)))

    assert [(one.what, one.note) for one in told.events[2:4]] == [
        ("Attempt 1 ended: failed", "after 1 min 0 s · stalled"),
        ("Attempt 2 started", "after waiting 1 min 0 s"),
    ]
    assert [one.mark for one in told.bar] == ["waiting", "failed", "waiting", "completed"]


def test_what_nobody_knows_is_left_out_and_what_is_no_record_is_no_fault():
    nothing = of(Record(job_id="x", outcome=Outcome.FAILED, attempt=0))
    run = Run(**columns_of(a_record()))
    run.attempts = [3, {"startedAt": "soon", "outcome": ["x"]}, None]

    assert (list(nothing.events), list(nothing.bar), nothing.total) == ([], [], "—")
    assert timeline(run).events[-1].what == "Attempt 1 ended: completed"
    run.attempts = {"x": 1}
    assert len(timeline(run).events) == 3


@settings(max_examples=60)
@given(records())
def test_no_part_sticks_out_of_the_bar(record):
    for part in of(record).bar:
        assert 0 <= part.start <= BAR_WIDTH
        assert part.width > 0
        assert part.start + part.width <= BAR_WIDTH + 2
