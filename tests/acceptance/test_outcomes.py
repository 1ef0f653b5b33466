from __future__ import annotations

from datetime import datetime

import pytest

from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs

KNOBS = Knobs(without_containers=True)


def _end(record):
    return record["outcome"], record["reason"], record["attempt"], record["budgetReserved"]


@pytest.mark.docker
def test_a_job_that_fails_is_tried_again_once_after_a_while_and_recorded_as_two_attempts(contained):
    contained.worker().start(Knobs())
    job_id = contained.enqueue(contained.folder("folder", exit_code="1"))
    contained.until_over(seconds=20)

    record = contained.record(job_id)
    (first,) = record["attempts"]
    evidence = contained.require_sound()
    assert _end(record) == ("failed", None, 1, True)
    assert (first["outcome"], first["exitCode"], first["turns"]) == ("failed", 1, 2)
    pause = datetime.fromisoformat(record["startedAt"]) - datetime.fromisoformat(first["endedAt"])
    assert pause.total_seconds() >= QUICK.backoff_base
    assert len(evidence.lives) == evidence.counted == 2


def test_a_job_that_fails_at_first_can_still_complete(fleet):
    gate = fleet.home / "gate"
    fleet.worker().start(Knobs(without_containers=True, gates={"before promote": str(gate)}), ready=False)
    job_id = fleet.enqueue(fleet.folder("folder", exit_code="1"))
    fleet.until_status(job_id, "scheduled", seconds=20)
    fleet.ground.order("folder", {"exit-code": "0"})
    gate.touch()
    fleet.until_over(seconds=15)

    assert _end(fleet.record(job_id)) == ("completed", None, 1, True)
    fleet.require_sound()


def test_a_missing_image_is_a_refusal_that_costs_nothing(fleet):
    fleet.worker().start(KNOBS)
    job_id = fleet.enqueue(fleet.folder("folder"), image="pi-dispatch-absent:none")
    fleet.until_over(seconds=10)

    assert _end(fleet.record(job_id)) == ("policy", "job-image-missing", 0, False)
    evidence = fleet.require_sound()
    assert (evidence.counted, evidence.granted, evidence.spans) == (0, 0, ())


def test_of_many_jobs_at_once_no_more_start_than_the_day_allows(fleet):
    workers = [fleet.worker(name, concurrency=10, daily_cap=5) for name in ("alpha", "beta")]
    for number in range(20):
        fleet.enqueue(fleet.folder(f"folder-{number}", delay="0.3"))
    # A new day would allow five more.
    fleet.until_a_day_has_time_left(20)
    for worker in workers:
        worker.start(KNOBS)
    fleet.until_over(seconds=20)

    evidence = fleet.require_sound()
    assert outcomes(evidence) == {"completed": 5, "policy/over-budget": 15}
    assert (evidence.counted, len(evidence.spans)) == (5, 5)
