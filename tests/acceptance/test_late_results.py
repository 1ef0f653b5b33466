from __future__ import annotations

from dataclasses import replace

from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import until

#: Whoever is silent for a second and a half is given up: here one is, on purpose.
HASTY = replace(QUICK, queue=replace(QUICK.queue, beat_every=0.2, late=1.5, gone=1.5))
KNOBS = Knobs(timings=HASTY, without_containers=True)


def test_the_end_of_a_job_that_was_given_up_changes_nothing(fleet):
    alpha, beta = fleet.worker("alpha"), fleet.worker("beta")
    alpha.start(KNOBS)
    job_id = fleet.enqueue(fleet.folder("folder", delay="2"))
    fleet.until_status(job_id, "started")
    alpha.freeze()
    beta.start(KNOBS)
    fleet.until_over(seconds=20)
    record, known = fleet.record(job_id), fleet.hash_of(job_id)
    assert (record["outcome"], record["reason"], record["host"]) == ("failed", "stalled", "alpha")

    alpha.thaw()
    alpha.until_said("transition_lost", jobId=job_id)

    evidence = fleet.require_sound()
    assert outcomes(evidence) == {"failed/stalled": 1}
    assert fleet.record(job_id) == record
    assert fleet.hash_of(job_id) == known


def test_a_worker_that_was_frozen_before_a_start_neither_starts_the_job_nor_takes_its_money_back(fleet):
    gate = fleet.home / "gate"
    alpha, beta = fleet.worker("alpha"), fleet.worker("beta")
    job_id = fleet.enqueue(fleet.folder("folder", delay="0.5"))
    alpha.start(replace(KNOBS, gates={"before begin": str(gate)}), ready=False)
    until(gate.with_name("gate.reached").exists, seconds=20, what="the job is paid for")
    alpha.freeze()
    beta.start(KNOBS)
    fleet.until_status(job_id, "started", seconds=20)

    gate.touch()
    alpha.thaw()
    alpha.until_said("transition_lost", jobId=job_id, transition="begin")
    fleet.until_over(seconds=10)

    evidence = fleet.require_sound()
    assert outcomes(evidence) == {"completed": 1}
    assert (fleet.record(job_id)["host"], evidence.counted) == ("beta", 1)


def test_a_job_that_was_handed_to_a_frozen_worker_runs_once_on_another_host(fleet):
    alpha, beta = fleet.worker("alpha"), fleet.worker("beta")
    folder = fleet.folder("folder")
    alpha.start(replace(KNOBS, timings=replace(HASTY, pop_block=10)))
    until(lambda: fleet.all_wait(1), seconds=10, what="alpha waits for a job")
    alpha.freeze()
    job_id = fleet.enqueue(folder)
    (taken,) = fleet.client.scan_iter(f"pi-jobs:taken:{alpha.host_id}-*")
    assert fleet.client.lrange(taken, 0, -1) == [job_id.encode()]
    beta.start(KNOBS)
    alpha.kill()
    fleet.until_over(seconds=15)

    assert outcomes(fleet.require_sound()) == {"completed": 1}
    assert fleet.record(job_id)["host"] == "beta"
