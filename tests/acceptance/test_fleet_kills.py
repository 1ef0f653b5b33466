"""Several hosts on one queue and their own: killed, frozen, and robbed of what telemetry and leases know."""

from __future__ import annotations

import time
from dataclasses import replace

from hosts import roster
from tests.harness.deletion import Deletion
from tests.harness.evidence import leases
from tests.harness.fleet import Fleet
from tests.harness.host_load import put, require_at_home
from tests.harness.judge import bounded_per_repository, mirrored_as_recorded, outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.manage import answered
from tests.harness.worker_process import WorkerProcess, start_all, until

#: Silence is judged within two seconds, so that a short freeze is enough to be given up.
HASTY = replace(QUICK, queue=replace(QUICK.queue, beat_every=0.2, late=1.5, gone=2))
NAMES = ("alpha", "beta", "gamma")


def test_of_hosts_that_are_killed_and_frozen_no_job_is_lost_or_run_twice_and_bounds_hold(server):
    server.start()
    with Fleet(server.url) as fleet:
        knobs = Knobs(timings=HASTY, without_containers=True, repositories=str(fleet.ground.home))
        limits = fleet.bound(red=1, green=1, blue=1)
        workers = [fleet.worker(name, concurrency=2, environment=limits) for name in NAMES]
        theirs = put(fleet, NAMES, jobs=48, folders=6, make=fleet.place, delay=0.3)
        for worker in workers:
            worker.start(knobs, ready=False)
        alpha, beta, gamma = workers
        until(lambda: _has_a_lease(fleet, alpha), seconds=20, what="alpha runs a job of a repository")
        alpha.kill()
        beta.freeze()
        alpha.start(knobs, ready=False)
        server.terminate()
        server.start()
        time.sleep(2.5)
        beta.thaw()
        gamma.kill()
        gamma.start(knobs, ready=False)
        fleet.until_over(seconds=40)

        evidence = fleet.require_sound()
        assert set(outcomes(evidence)) <= {"completed", "failed/stalled"}
        require_at_home(fleet, theirs)
        assert fleet.complaints() == ""
        assert leases(fleet.client) == {}


def _has_a_lease(fleet: Fleet, worker: WorkerProcess) -> bool:
    return any(value.startswith(f"{worker.name}#") for value in leases(fleet.client).values())


def test_a_fleet_that_loses_its_registry_mirror_and_leases_all_the_time_refuses_and_loses_nothing(fleet):
    knobs = Knobs(timings=QUICK, without_containers=True, repositories=str(fleet.ground.home))
    limits = fleet.bound(red=1, green=1, blue=1)
    workers = [fleet.worker(name, concurrency=2, environment=limits) for name in NAMES]
    theirs = put(fleet, NAMES, jobs=36, folders=6, make=fleet.place, delay=0.3)

    with Deletion(fleet.client, every=0.05) as deletion:
        start_all(workers, knobs)
        answered({"VALKEY_URL": fleet.url, "PI_STATE_DIR": str(fleet.home)}, "fleet", "--json")
        fleet.until_over(seconds=40)
        assert deletion.deleted > 10

    evidence = fleet.require_sound(without=(bounded_per_repository, mirrored_as_recorded))
    assert outcomes(evidence) == {"completed": 36}
    require_at_home(fleet, theirs)
    assert fleet.complaints() == ""
    until(
        lambda: [row.name for row in roster.read(fleet.client).hosts] == list(NAMES),
        seconds=5,
        what="all hosts are in the registry again",
    )
