from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from dispatch.worker.timings import WorkerTimings
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs, StopAt
from tests.harness.worker_process import until


def _kill_while_it_works(fleet: Fleet, knobs: Knobs, *, kills: int) -> None:
    worker, chance = fleet.worker(concurrency=4), random.Random(7)
    for _ in range(kills):
        worker.start(knobs)
        time.sleep(chance.uniform(0.2, 0.6))
        worker.kill()
    worker.start(knobs)
    fleet.until_over(seconds=30)


def test_a_worker_that_is_killed_again_and_again_loses_no_job_and_runs_none_twice(fleet):
    folders = [fleet.folder(f"folder-{number}", delay="0.2") for number in range(6)]
    for number in range(30):
        fleet.enqueue(folders[number % 6])

    _kill_while_it_works(fleet, Knobs(without_containers=True), kills=3)

    evidence = fleet.require_sound()
    assert set(outcomes(evidence)) <= {"completed", "failed/stalled"}
    assert fleet.complaints() == ""


@pytest.mark.docker
def test_no_container_of_a_killed_worker_meets_another_job_in_its_folder(contained):
    folders = [contained.folder(f"folder-{number}", delay="0.5") for number in range(3)]
    for number in range(9):
        contained.enqueue(folders[number % 3])

    _kill_while_it_works(contained, Knobs(), kills=2)

    evidence = contained.require_sound()
    assert set(outcomes(evidence)) <= {"completed", "failed/stalled"}
    assert evidence.lives


@pytest.mark.docker
def test_what_a_killed_worker_left_running_is_gone_before_its_folder_is_used_again(contained):
    worker = contained.worker(concurrency=1)
    folder = contained.folder("folder", delay="20")
    contained.enqueue(folder)
    worker.start(Knobs())
    until(contained.ground.spans, seconds=15, what="the job runs")
    worker.kill()
    contained.ground.order("folder", {"delay": "0"})
    contained.enqueue(folder)

    # A slow removal: whoever did not wait for it would meet the old container.
    worker.start(Knobs(delays={"before remove": 1}))
    contained.until_over(seconds=15)

    assert outcomes(contained.require_sound()) == {"completed": 1, "failed/stalled": 1}


def test_a_job_in_the_hand_of_a_killed_worker_runs_as_soon_as_it_is_back(fleet):
    worker = fleet.worker()
    fleet.enqueue(fleet.folder("folder"))
    knobs = Knobs(timings=WorkerTimings(), without_containers=True)

    worker.start(replace(knobs, stop_at=StopAt(point="before begin")), ready=False)
    until(lambda: worker.returncode is not None, seconds=20, what="it dies")
    worker.start(knobs)
    fleet.until_over(seconds=10)

    assert outcomes(fleet.require_sound()) == {"completed": 1}
    assert len(fleet.events("job_put_back")) == 1


def test_a_second_worker_of_one_state_directory_is_refused(fleet):
    first, second = fleet.worker("alpha"), fleet.worker("alpha")
    first.start(Knobs(without_containers=True))

    second.start(Knobs(without_containers=True), ready=False)

    assert second.wait(seconds=20) == 1
    assert "running already" in second.complaint()
    second.kill()
    first.kill()
