"""A worker killed while it puts a job to sleep: before the sleep is written, and right after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs, StopAt
from tests.harness.operator_ground import EMPTY, OperatorGround, in_seconds, limited
from tests.harness.worker_process import WorkerProcess, until

KNOBS = Knobs(without_containers=True)
BEFORE, AFTER = StopAt(point="before put off"), StopAt(point="after put off")


@pytest.fixture
def files(fleet: Fleet) -> OperatorGround:
    return OperatorGround(fleet.home / "operator")


def _worker(fleet: Fleet, files: OperatorGround, **more: object) -> WorkerProcess:
    fleet.until_a_day_has_time_left(30)
    given = {"PI_CAP_ACTION": "park", "PI_WAIT_MAX_MS": "7000"}
    return fleet.worker(environment={**files.environment, **given}, **more)


def _killed_at(worker: WorkerProcess, stop: StopAt) -> None:
    worker.start(replace(KNOBS, stop_at=stop), ready=False)
    until(lambda: worker.returncode is not None, seconds=20, what="a job is put to sleep")


def _standing(fleet: Fleet, job_id: str) -> tuple[str, str]:
    fields = fleet.hash_of(job_id)
    return fields[b"status"].decode(), fields[b"attempt"].decode()


def _require_untouched(fleet: Fleet, job_ids: list[str]) -> None:
    """All of them ran at their first attempt, once, and nothing else of them was kept."""
    assert outcomes(fleet.require_sound()) == {"completed": len(fleet.job_ids)}
    assert [(fleet.record(one)["attempt"], fleet.record(one)["attempts"]) for one in job_ids] == [
        (0, [])
    ] * len(job_ids)


def test_a_job_that_is_put_to_sleep_for_a_time_is_neither_lost_nor_tried_nor_early(fleet, files):
    # Long enough for six starts of a worker on a busy machine.
    paused, end = fleet.place("paused"), in_seconds(18)
    files.pause(paused, to=end)
    files.says(3)
    worker = _worker(fleet, files, concurrency=1)
    job_ids = [
        fleet.enqueue(fleet.place("after"), wait_for=({"after": end.isoformat()},)),
        fleet.enqueue(fleet.place("check"), wait_for=({"profile": "check"},)),
        fleet.enqueue(paused),
    ]

    for job_id in job_ids:
        _killed_at(worker, BEFORE)
        assert _standing(fleet, job_id) == ("queued", "0")
        _killed_at(worker, AFTER)
        assert _standing(fleet, job_id) == ("scheduled", "0")
    files.says(0)
    worker.start(KNOBS)
    fleet.until_over(seconds=20)

    assert {int(fleet.hash_of(one)[b"putBacks"]) for one in job_ids} == {1}
    for job_id in (job_ids[0], job_ids[2]):
        assert datetime.fromisoformat(fleet.record(job_id)["startedAt"]) >= end
    _require_untouched(fleet, job_ids)


def test_a_job_that_is_put_to_sleep_by_a_cap_is_neither_lost_nor_tried(fleet, files):
    folder = fleet.place("folder")
    files.write("limits", limited([folder], day=1))
    worker = _worker(fleet, files)
    fleet.enqueue(folder)
    worker.start(KNOBS)
    fleet.until_over(seconds=10)
    worker.kill()
    job_id = fleet.enqueue(folder)

    _killed_at(worker, BEFORE)
    assert _standing(fleet, job_id) == ("queued", "0")
    _killed_at(worker, AFTER)
    assert _standing(fleet, job_id) == ("scheduled", "0")
    # Nobody is there who would see the edit.
    files.write("limits", EMPTY["limits"])
    worker.start(KNOBS)
    fleet.until_over(seconds=10)

    _require_untouched(fleet, [job_id])


@pytest.mark.parametrize(("stop", "standing"), [(BEFORE, "queued"), (AFTER, "scheduled")])
def test_a_job_that_is_put_to_sleep_for_its_folder_is_neither_lost_nor_tried(fleet, files, stop, standing):
    folder = fleet.place("folder", delay="20")
    worker = _worker(fleet, files)
    holder, job_id = fleet.enqueue(folder), fleet.enqueue(folder)

    _killed_at(worker, stop)
    assert _standing(fleet, job_id) == (standing, "0")
    fleet.ground.order("folder", {"delay": "0"})
    worker.start(KNOBS)
    fleet.until_over(seconds=15)

    # The holder was running when its worker died, or had not been begun yet.
    assert fleet.record(holder)["reason"] in {"stalled", None}
    record = fleet.record(job_id)
    assert (record["outcome"], record["attempt"], record["attempts"]) == ("completed", 0, [])
    fleet.require_sound()
