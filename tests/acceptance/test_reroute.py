"""Jobs go from one host's queue to another's while both work: each runs once."""

from __future__ import annotations

import time
from collections import Counter

from dispatch.console.reroute import reroute, wished
from dispatch.queue.moving import Moved, move, read_waiting
from hosts import switches
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs

JOBS = 40


def test_a_host_that_takes_jobs_again_while_they_are_moved_runs_none_twice(fleet):
    knobs = Knobs(timings=QUICK, without_containers=True)
    alpha, beta = (fleet.worker(name, concurrency=2) for name in ("alpha", "beta"))
    switches.drain(fleet.client, "alpha", by="acceptance", reason="")
    for worker in (alpha, beta):
        worker.start(knobs, ready=False)
    for number in range(JOBS):
        fleet.enqueue(fleet.place(f"folder-{number}", delay="0.05"), queue=alpha.queue)
    for worker in (alpha, beta):
        worker.until_said("worker_started")
    tried = reroute(fleet.client, wished("alpha", "beta", same_folders=True, is_tried=True))
    assert {queue: len(ids) for queue, ids in tried.moved.items()} == {beta.queue: JOBS}

    switches.undrain(fleet.client, "alpha")
    alpha.until_said("job_started")
    moved = Counter()
    while waiting := read_waiting(fleet.client, alpha.queue):
        last = [one.raw_id for one in waiting][-2:]
        moved.update(move(fleet.client, last, source=alpha.queue, target=beta.queue).values())
        time.sleep(0.05)
    fleet.until_over(seconds=20)

    assert outcomes(fleet.require_sound()) == {"completed": JOBS}
    ran = Counter(record["host"] for record in fleet.records(fleet.job_ids).values())
    assert ran == {"alpha": JOBS - moved[Moved.MOVED], "beta": moved[Moved.MOVED]}
    assert min(ran.values()) > 0
