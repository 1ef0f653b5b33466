"""Stopping the whole fleet, and proving it where a host does not answer."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dispatch.queue import containers
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.manage import answered, manage
from tests.harness.worker_process import until

NAMES = ("alpha", "beta", "gamma")
#: A frozen host is not given up meanwhile: its jobs are to be stopped, not failed.
PATIENT = Knobs(timings=replace(QUICK, queue=replace(QUICK.queue, gone=60)))


@pytest.mark.docker
def test_a_stop_names_what_it_could_not_confirm_and_nothing_new_starts_anywhere(contained):
    fleet = contained
    workers = [fleet.worker(name, concurrency=2) for name in NAMES]
    for worker in workers:
        worker.start(PATIENT, ready=False)
    running = [
        fleet.enqueue(fleet.folder(f"{worker.name}-{number}", delay="60"), queue=worker.queue)
        for worker in workers
        for number in range(2)
    ]
    until(lambda: len(fleet.ground.spans()) == 6, seconds=20, what="six jobs run")
    frozen = workers[2]
    frozen.freeze()

    switch = {"VALKEY_URL": fleet.url, "PI_STATE_DIR": str(fleet.home)}
    # Production waits for 30 s.
    found = answered(switch, "stop", "--timeout", "5", "--json", code=1)

    fates = {one["job"]: (one["host"], one["state"]) for one in found["containers"]}
    assert fates == {
        **{job_id: (NAMES[number // 2], "gone") for number, job_id in enumerate(running[:4])},
        **dict.fromkeys(running[4:], ("gamma", "unconfirmed")),
    }
    assert {life.job_id for life in fleet.lives() if life.died} == set(running[:4])
    waiting = [fleet.enqueue(fleet.folder("shared"))]
    waiting += [fleet.enqueue(fleet.folder(f"{one.name}-new"), queue=one.queue) for one in workers]
    time.sleep(1)

    frozen.thaw()
    until(lambda: not containers.begun(fleet.client, frozen.host_id), seconds=20, what="gamma's are gone too")
    fleet.until_over(running, seconds=10)
    assert len(fleet.lives()) == 6
    assert fleet.statuses(waiting) == [b"queued"] * 4

    assert manage(switch, "resume").returncode == 0
    fleet.until_over(seconds=20)
    assert outcomes(fleet.require_sound()) == {"completed": 4, "policy/operator-stop": 6}
