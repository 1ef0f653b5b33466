"""Two hosts on one queue, killed, frozen and paused at random, each judging the other by its silence."""

from __future__ import annotations

import random
import time
from dataclasses import replace

from hosts import keys as hosts_keys
from hosts import switches
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import WorkerProcess
from tests.soak.stage import Clock, stage

#: Silence is judged within seconds, and a wide window around each start makes rare meetings common.
KNOBS = Knobs(
    timings=replace(QUICK, reap_every=2, queue=replace(QUICK.queue, late=2.5, gone=4)),
    delays={"after pop": 0.03, "after reserve": 0.05, "after begin": 0.05, "before end": 0.03},
)


def run(*, short: bool) -> dict[str, object]:
    """300 jobs on 24 folders, each host with 3 slots."""
    jobs, folders = (40, 8) if short else (300, 24)
    clock = Clock()
    with stage() as (fleet, _):
        workers = [fleet.worker(name, concurrency=3) for name in ("alpha", "beta")]
        places = [
            fleet.folder(f"folder-{number}", delay=f"{0.1 + number / 50:.2f}") for number in range(folders)
        ]
        for number in range(jobs):
            fleet.enqueue(places[number % folders])
        for worker in workers:
            worker.start(KNOBS)
        done = _torment(fleet, workers, seconds=240 if short else 900)
        fleet.until_over(seconds=120)
        evidence = fleet.require_sound(tidy_seconds=20)
        return {
            "seconds": clock.seconds,
            "jobs": jobs,
            **done,
            "outcomes": outcomes(evidence),
            "putBacks": len(fleet.events("job_put_back")),
            "lost": len(fleet.events("transition_lost")),
            "containers": len(evidence.lives or ()),
        }


def _torment(fleet: Fleet, workers: list[WorkerProcess], *, seconds: float) -> dict[str, int]:
    """Do one thing after another to one of the two until all jobs have ended."""
    chance = random.Random(3)
    done = {"kills": 0, "freezes": 0, "pauses": 0}
    deadline = time.monotonic() + seconds
    while fleet.how_many_are_over() < len(fleet.job_ids):
        assert time.monotonic() < deadline, f"not done: {done}"
        victim = chance.choice(workers)
        match chance.choice(("kill", "kill", "freeze", "freeze", "pause")):
            case "kill":
                victim.kill()
                victim.start(KNOBS, ready=False)
                done["kills"] += 1
            case "freeze":
                victim.freeze()
                time.sleep(chance.uniform(1, 7))
                victim.thaw()
                done["freezes"] += 1
            case _:
                switches.pause(fleet.client, (hosts_keys.FLEET,), by="soak", reason="")
                time.sleep(chance.uniform(0.1, 1))
                switches.resume_all(fleet.client)
                done["pauses"] += 1
        time.sleep(chance.uniform(1, 2.5))
    return done
