"""Closes that race for one-shots on two hosts, which are killed anywhere between the job and the disarm."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs, StopAt
from tests.harness.standing_work import TriggersFile, recorded
from tests.harness.worker_process import WorkerProcess
from tests.soak.stage import Clock, stage

NAMES = ("alpha", "beta")
#: From the claim over the record to the file; None: it is not killed.
POINTS = (
    *("before begin", "after begin", "before end", "after end", "before refuse", "after refuse"),
    *("filed", "written", "told", "removed"),
    *("triggers locked", "triggers read", "triggers written", "triggers replaced", None),
)
#: Seconds after which what a killed writer left is surely taken to be left.
OLD = 60.0


def run(*, short: bool) -> dict[str, object]:
    """60 rounds, every third with one file that both hosts have in common; short: 6."""
    rounds = 6 if short else 60
    clock, chance = Clock(), random.Random(17)
    with stage(containers=False) as (fleet, _):
        knobs = Knobs(without_containers=True, repositories=str(fleet.ground.home))
        paths = _write_files(fleet, rounds)
        done: Counter[str] = Counter()
        for number in range(rounds):
            common = number % 3 == 0
            files = {name: paths["common" if common else name] for name in NAMES}
            played = Round(fleet, knobs, number, files)
            played.play({name: chance.choice(POINTS) for name in NAMES}, stale=chance.random() < 0.3)
            done += played.done
        ended = outcomes(fleet.require_sound(tidy_seconds=20))
        assert "Traceback" not in fleet.complaints(), fleet.complaints()
        told = Counter(one["event"] for one in fleet.events() if one["event"].startswith("trigger"))
        return {"seconds": clock.seconds, "rounds": rounds, **done, "outcomes": ended, "told": dict(told)}


def _write_files(fleet: Fleet, rounds: int) -> Mapping[str, Path]:
    """Write a file for each host and one for both; a round's entry is the one of its number."""
    files = {name: TriggersFile(fleet.home / f"{name}.json") for name in (*NAMES, "common")}
    for file in files.values():
        file.write(*(_entry(number) for number in range(rounds)))
    return {name: file.path for name, file in files.items()}


def _entry(number: int) -> dict[str, Any]:
    on = {"type": "issue", "action": ["closed"], "number": number + 1, "once": True}
    return {"on": on, "run": {"kind": "github", "flow": "fix"}}


@dataclass(slots=True)
class Round:
    """Two hosts, each with its file of `files`, and the entry of this number."""

    fleet: Fleet
    knobs: Knobs
    number: int
    files: Mapping[str, Path]
    done: Counter[str] = field(default_factory=Counter)
    _workers: list[WorkerProcess] = field(default_factory=list)
    _jobs: list[str] = field(default_factory=list)

    def play(self, points: Mapping[str, str | None], *, stale: bool) -> None:
        """Two closes at once, kills on the way, then one more on each host: one of them all runs."""
        folder = self.fleet.place(f"repository-{self.number}", delay="0.1").name
        self._age_locks(make=stale)
        for name in NAMES:
            told = {"PI_TRIGGERS_FILE": str(self.files[name])}
            self._workers.append(self.fleet.worker(name, environment=told))
        self._start(points)
        for worker in self._workers[:: -1 if self.number % 2 else 1]:
            self._close(folder, worker)
        self._until_over()
        # What a killed writer left is old by now for whoever comes next.
        self._age_locks(make=False)
        for worker in self._workers:
            self._close(folder, worker)
            self._until_over()
        self._judge(folder)
        for worker in self._workers:
            worker.kill()

    def _age_locks(self, *, make: bool) -> None:
        for path in set(self.files.values()):
            lock = path.with_name(f"{path.name}.lock")
            if make:
                lock.touch()
                self.done["staleLocks"] += 1
            if lock.exists():
                os.utime(lock, (time.time() - OLD,) * 2)

    def _start(self, points: Mapping[str, str | None]) -> None:
        said = [worker.said_so_far() for worker in self._workers]
        for worker in self._workers:
            point = points[worker.name]
            worker.start(replace(self.knobs, stop_at=StopAt(point=point) if point else None), ready=False)
        for worker, so_far in zip(self._workers, said, strict=True):
            worker.until_said("worker_started", after=so_far)

    def _close(self, folder: str, worker: WorkerProcess) -> None:
        """Deliver a close to this host."""
        once = (self.number, self.number + 1)
        self._jobs.append(self.fleet.enqueue_forge(folder, queue=worker.queue, once=once))
        self.done["closes"] += 1

    def _until_over(self) -> None:
        """Wait until all is over and recorded; who was killed is started again."""
        deadline = time.monotonic() + 60
        while not self._is_over():
            assert time.monotonic() < deadline, (self._jobs, self.fleet.statuses(self._jobs))
            for worker in self._workers:
                if worker.returncode is not None:
                    assert worker.returncode == -signal.SIGKILL, worker.complaint()
                    self.done["kills"] += 1
                    worker.start(self.knobs, ready=False)
            self._require_a_record()
            time.sleep(0.02)

    def _is_over(self) -> bool:
        is_over = self.fleet.how_many_are_over(self._jobs) == len(self._jobs)
        lives = all(worker.returncode is None for worker in self._workers)
        return is_over and lives and not self.fleet.has_unwritten_records()

    def _require_a_record(self) -> None:
        """At no instant is the entry disarmed by a job that has no record."""
        for spender in filter(None, map(self._spender, set(self.files.values()))):
            assert recorded(self.fleet)[spender], f"{spender} has disarmed and has no record"

    def _spender(self, path: Path) -> str | None:
        """The job that the entry says has spent it; AssertionError for a file that is not whole."""
        on = json.loads(path.read_text())["triggers"][self.number]["on"]
        assert on["number"] == self.number + 1
        return on["disarmed"]["jobId"] if "disarmed" in on else None

    def _judge(self, folder: str) -> None:
        """One has run and both files name it; all others were refused."""
        records = self.fleet.records(self._jobs)
        ran = [job_id for job_id, record in records.items() if record["reason"] != "once-already-spent"]
        spans = [span for span in self.fleet.ground.spans() if span.folder == folder]
        assert len(ran) == 1, records
        assert len(spans) <= 1, spans
        assert {self._spender(path) for path in self.files.values()} == set(ran)
        self.done["ranOn " + records[ran[0]]["host"]] += 1
