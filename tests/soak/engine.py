"""A container engine that is gone, frozen and forgetful in turn, behind a worker with many jobs."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.harness.engine_proxy import UPSTREAM, Act, EngineProxy
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.soak.stage import Clock, stage

#: The second attempt comes when an outage of this soak is over, as production's minute means it to.
KNOBS = Knobs(timings=replace(QUICK, backoff_base=6, reap_every=2), engine_seconds=3)
_CHANGES = (
    "POST /containers/create",
    "POST /containers/[^/]+/start",
    "DELETE /containers/",
    "GET /containers/json",
)


def run(*, short: bool) -> dict[str, object]:
    """100 jobs on 20 folders; what the engine answered with an error may fail, after two attempts."""
    jobs, folders = (24, 6) if short else (100, 20)
    clock = Clock()
    home = Path(tempfile.mkdtemp(prefix="pd-px-"))
    upstream = os.environ.get("DOCKER_HOST", f"unix://{UPSTREAM}").removeprefix("unix://")
    with stage() as (fleet, _), EngineProxy(home, upstream=upstream) as proxy:
        worker = fleet.worker(concurrency=4, environment=proxy.environment)
        places = [fleet.folder(f"folder-{number}", delay=f"{number / 10:.1f}") for number in range(folders)]
        for number in range(jobs):
            fleet.enqueue(places[number % folders])
        worker.start(KNOBS)
        done = _torment(fleet, proxy, seconds=300)
        fleet.until_over(seconds=120)
        evidence = fleet.require_sound(tidy_seconds=30)
        ended = outcomes(evidence)
        assert set(ended) <= {"completed", "failed/container-never-started"}, ended
        assert fleet.complaints() == ""
    shutil.rmtree(home, ignore_errors=True)
    return {
        "seconds": clock.seconds,
        "jobs": jobs,
        **done,
        "outcomes": ended,
        "containers": len(evidence.lives or ()),
        "refunds": sum(record["attempt"] + 1 for job in evidence.jobs for record in job.files)
        - evidence.granted,
    }


def _torment(fleet: Fleet, proxy: EngineProxy, *, seconds: float) -> dict[str, int]:
    """Do one thing after another to the engine's socket until all jobs have ended."""
    chance = random.Random(17)
    done = {"gone": 0, "frozen": 0, "lies": 0}
    deadline = time.monotonic() + seconds
    while fleet.how_many_are_over() < len(fleet.job_ids):
        assert time.monotonic() < deadline, f"not done: {done}"
        match chance.choice(("gone", "frozen", "lies", "lies", "lies")):
            case "gone":
                proxy.down()
                time.sleep(chance.uniform(0.2, 4))
                proxy.listen()
                done["gone"] += 1
            case "frozen":
                proxy.freeze()
                time.sleep(chance.uniform(1, 5))
                proxy.thaw()
                done["frozen"] += 1
            case _:
                proxy.next(
                    chance.choice(_CHANGES), chance.choice([act for act in Act if act is not Act.HOLD])
                )
                done["lies"] += 1
        time.sleep(chance.uniform(0.1, 1.5))
    return done
