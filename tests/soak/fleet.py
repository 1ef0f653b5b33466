"""Four hosts on one queue and their own, killed and frozen at random, and Valkey restarted in between."""

from __future__ import annotations

import random
import time
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from tests.harness.deletion import Deletion
from tests.harness.evidence import leases
from tests.harness.fleet import Fleet
from tests.harness.host_load import put, require_at_home
from tests.harness.judge import Rule, bounded_per_repository, mirrored_as_recorded, outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.valkey_server import ValkeyServer
from tests.harness.worker_process import WorkerProcess
from tests.soak.stage import Clock, stage

NAMES = ("alpha", "beta", "gamma", "delta")
#: How many containers of each repository there may be in the whole fleet.
BOUNDS = {"red": 1, "green": 1, "blue": 1}
#: A wide window around each step makes rare meetings common.
WIDE = {"after pop": 0.03, "after reserve": 0.05, "after begin": 0.05, "before end": 0.03}
_RESTARTS = 2


def run(*, short: bool) -> dict[str, object]:
    """500 jobs of 4 hosts with 3 slots each; every 3 s one host is killed, or frozen for 20 s."""
    return play(short=short)


def play(*, short: bool, deletion_seconds: float = 0) -> dict[str, object]:
    """Play it; with `deletion_seconds` all that a fleet may lose is deleted each second for so long.

    What deletions cannot but break is not judged then: how many of a repository run at once, and what the
    mirror holds.
    """
    jobs, every, freeze = (40, 2.0, 4.0) if short else (500, 3.0, 20.0)
    # Who stands still for as long as a freeze lasts is given up, and hears of it when it goes on.
    silence = {"late": 1.5, "gone": 2.5} if short else {"late": 4, "gone": 8}
    timings = replace(QUICK, reap_every=2, queue=replace(QUICK.queue, **silence))
    clock = Clock()
    with stage() as (fleet, server):
        limits = fleet.bound(**BOUNDS)
        workers = [fleet.worker(name, concurrency=3, environment=limits) for name in NAMES]
        knobs = Knobs(timings=timings, repositories=str(fleet.ground.home), delays=WIDE)
        theirs = put(fleet, NAMES, jobs=jobs, folders=6 if short else 12, make=fleet.folder, delay=0.5)
        for worker in workers:
            worker.start(knobs, ready=False)
        unjudged: Collection[Rule] = ()
        deleting: AbstractContextManager[Deletion | None] = nullcontext()
        if deletion_seconds:
            deleting = Deletion(fleet.client, every=1, seconds=deletion_seconds)
            unjudged = (bounded_per_repository, mirrored_as_recorded)
        with deleting as deletion:
            torment = Torment(fleet, server, workers, knobs, freeze=freeze)
            torment.until_over(every=every, seconds=300 if short else 1500)
        fleet.until_over(seconds=60)
        evidence = fleet.require_sound(tidy_seconds=30, without=unjudged)
        ended = outcomes(evidence)
        assert set(ended) <= {"completed", "failed/stalled"}, ended
        require_at_home(fleet, theirs)
        assert leases(fleet.client) == {}
        assert fleet.complaints() == ""
        return {
            "seconds": clock.seconds,
            "jobs": jobs,
            **torment.done,
            **({"deleted": deletion.deleted} if deletion else {}),
            "outcomes": ended,
            "putBacks": len(fleet.events("job_put_back")),
            "lost": len(fleet.events("transition_lost")),
            "containers": len(evidence.lives or ()),
        }


class Torment:
    """Does one thing after another to hosts and server; `done` counts what."""

    def __init__(
        self, fleet: Fleet, server: ValkeyServer, workers: list[WorkerProcess], knobs: Knobs, *, freeze: float
    ) -> None:
        self._fleet = fleet
        self._server = server
        self._workers = workers
        self._knobs = knobs
        self._freeze = freeze
        self._chance = random.Random(11)
        self._thaws: dict[str, float] = {}
        self.done = {"kills": 0, "freezes": 0, "restarts": 0}

    def until_over(self, *, every: float, seconds: float) -> None:
        """Go on until every job has ended; all hosts work on when it returns."""
        deadline = time.monotonic() + seconds
        due = time.monotonic() + every
        while (over := self._fleet.how_many_are_over()) < len(self._fleet.job_ids):
            assert time.monotonic() < deadline, f"not done: {over} jobs are over, {self.done}"
            self._thaw(time.monotonic())
            if over >= len(self._fleet.job_ids) * (self.done["restarts"] + 1) / (_RESTARTS + 1):
                self._restart()
            if time.monotonic() >= due:
                self._afflict(self._victim())
                due += every
            time.sleep(0.1)
        self._thaw(float("inf"))

    def _victim(self) -> WorkerProcess:
        """Pick any; while few stand still, one that works, so that most freezes come to their end."""
        working = [worker for worker in self._workers if worker.name not in self._thaws]
        return self._chance.choice(working if len(working) > len(self._workers) / 2 else self._workers)

    def _afflict(self, victim: WorkerProcess) -> None:
        """Kill it, frozen or not, or freeze it."""
        if victim.name in self._thaws or self._chance.random() < 0.5:
            self._thaws.pop(victim.name, None)
            victim.kill()
            victim.start(self._knobs, ready=False)
            self.done["kills"] += 1
        else:
            victim.freeze()
            self._thaws[victim.name] = time.monotonic() + self._freeze
            self.done["freezes"] += 1

    def _thaw(self, now: float) -> None:
        for worker in self._workers:
            if self._thaws.get(worker.name, float("inf")) <= now and self._thaws.pop(worker.name, None):
                worker.thaw()

    def _restart(self) -> None:
        self._server.terminate()
        self._server.start()
        self.done["restarts"] += 1
