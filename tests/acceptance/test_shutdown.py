from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import until


@pytest.mark.docker
def test_sigterm_stops_the_running_jobs_for_good(contained):
    """Those that obey, and those that ignore it."""
    worker = contained.worker(concurrency=4)
    worker.start(Knobs())
    obeying, ignoring = (
        [contained.enqueue(contained.folder(f"{name}-{number}", delay="60", **orders)) for number in range(2)]
        for name, orders in (("obeying", {}), ("ignoring", {"ignore_term": ""}))
    )
    running = [*obeying, *ignoring]
    until(lambda: len(contained.ground.spans()) == 4, seconds=15, what="four jobs run")
    waiting = contained.enqueue(contained.folder("later"))

    began = time.monotonic()
    code = worker.terminate()

    assert code == 0
    assert time.monotonic() - began < 15
    assert worker.events()[-1] == {"event": "worker_stopped", "jobs": 0, "host": "alpha"}
    assert contained.evidence().left == ()
    for job_id in running:
        record = contained.record(job_id)
        assert (record["outcome"], record["reason"], record["attempt"]) == ("policy", "worker-abort", 0)
        assert record["exitCode"] == (2 if job_id in obeying else 137)
    assert contained.statuses([waiting]) == [b"queued"]

    worker.start(Knobs())
    contained.until_over(seconds=15)
    assert outcomes(contained.require_sound()) == {"completed": 1, "policy/worker-abort": 4}


def test_a_worker_that_is_asked_to_stop_while_it_is_frozen_stops_when_it_goes_on(fleet):
    """A service manager sends SIGTERM and SIGCONT; the system may then hand the signal to any thread."""
    workers = [fleet.worker(name) for name in ("alpha", "beta", "gamma")]
    for worker in workers:
        worker.start(Knobs(without_containers=True), ready=False)
    for worker in workers:
        worker.until_said("worker_started")
        worker.freeze()
        worker.ask_to_stop()
        worker.thaw()

    assert [worker.wait(seconds=10) for worker in workers] == [0, 0, 0]


def test_a_job_that_has_not_begun_goes_back_to_the_front_at_a_shutdown(fleet):
    gate = fleet.home / "gate"
    worker = fleet.worker(concurrency=1)
    job_ids = [fleet.enqueue(fleet.folder(f"folder-{number}")) for number in range(3)]
    worker.start(Knobs(without_containers=True, gates={"before reserve": str(gate)}), ready=False)
    until(gate.with_name("gate.reached").exists, seconds=20, what="the first job is about to be paid for")

    worker.ask_to_stop()
    time.sleep(0.3)
    gate.touch()

    assert worker.wait(seconds=15) == 0
    assert [one.decode() for one in fleet.client.lrange("rq:queue:pi-jobs", 0, -1)] == job_ids
    assert fleet.evidence().counted == 0
    worker.start(Knobs(without_containers=True))
    fleet.until_over(seconds=10)
    assert outcomes(fleet.require_sound()) == {"completed": 3}


def test_a_shutdown_without_valkey_ends_in_time_and_the_job_is_settled_later(server):
    server.start()
    with Fleet(server.url) as fleet:
        worker = fleet.worker()
        # Production waits for twelve seconds.
        worker.start(Knobs(timings=replace(QUICK, shutdown_patience=3), without_containers=True))
        job_id = fleet.enqueue(fleet.folder("folder", delay="60"))
        fleet.until_status(job_id, "started")
        server.kill()
        worker.until_said("valkey_unreachable")

        began = time.monotonic()
        assert worker.terminate(seconds=30) == 0
        assert time.monotonic() - began < 3 + 5
        assert worker.complaint() == ""

        server.start()
        worker.start(Knobs(without_containers=True))
        fleet.until_over(seconds=10)
        assert outcomes(fleet.require_sound()) == {"failed/stalled": 1}


def test_a_worker_that_waits_for_valkey_can_be_asked_to_stop(server):
    with Fleet(server.url) as fleet:
        worker = fleet.worker()
        worker.start(Knobs(without_containers=True), ready=False)
        worker.until_said("valkey_unreachable")

        assert worker.terminate(seconds=5) == 0
        assert worker.complaint() == ""
