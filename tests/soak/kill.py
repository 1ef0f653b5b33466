"""A worker killed with SIGKILL every 2 to 4 s, and started again at once, while it works off many jobs."""

from __future__ import annotations

import random
import time
from dataclasses import replace

from dispatch.worker.timings import WorkerTimings
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.worker_process import WorkerProcess
from tests.soak.stage import Clock, stage

PRODUCTION = WorkerTimings()


def run(*, short: bool) -> dict[str, object]:
    """300 jobs on 30 folders (0.1 to 0.5 s each), concurrency 4, production's timings; judge the end."""
    jobs, folders = (40, 8) if short else (300, 30)
    # Only what a killed worker had asked of the engine and nobody waits for is left to the reaper's pace.
    knobs = Knobs(timings=replace(PRODUCTION, reap_every=3) if short else PRODUCTION)
    clock = Clock()
    with stage() as (fleet, _):
        worker = fleet.worker(concurrency=4)
        places = [
            fleet.folder(f"folder-{number}", delay=f"{0.1 + 0.4 * number / (folders - 1):.2f}")
            for number in range(folders)
        ]
        for number in range(jobs):
            fleet.enqueue(places[number % folders])
        kills = _kill_until_over(fleet, worker, knobs, seconds=300 if short else 1500)
        fleet.until_over(seconds=60)
        evidence = fleet.require_sound(tidy_seconds=knobs.timings.reap_every + 15)
        put_backs = len(fleet.events("job_put_back"))
        return {
            "seconds": clock.seconds,
            "jobs": jobs,
            "kills": kills,
            "outcomes": outcomes(evidence),
            "putBacks": put_backs,
            "containers": len(evidence.lives or ()),
            "reaped": len(fleet.events("reaped_container")),
        }


def _kill_until_over(fleet: Fleet, worker: WorkerProcess, knobs: Knobs, *, seconds: float) -> int:
    """Kill and start again until every job has ended; how many kills that took."""
    chance = random.Random(5)
    deadline = time.monotonic() + seconds
    worker.start(knobs, ready=False)
    kills = 0
    while True:
        next_kill = time.monotonic() + chance.uniform(2, 4)
        while time.monotonic() < next_kill:
            if fleet.how_many_are_over() == len(fleet.job_ids):
                return kills
            assert worker.returncode is None, f"the worker ended by itself: {worker.complaint()}"
            time.sleep(0.1)
        assert time.monotonic() < deadline, f"not done after {kills} kills"
        worker.kill()
        kills += 1
        worker.start(knobs, ready=False)
