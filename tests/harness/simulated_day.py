"""Three hosts and one schedule through simulated hours: hosts freeze as they tick, and are restarted."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs, StopAt
from tests.harness.simulated_time import SimulatedTime
from tests.harness.standing_work import TriggersFile, cron, known_occurrences, occurrence, recorded
from tests.harness.worker_process import WorkerProcess, until

START = datetime(2026, 3, 2, tzinfo=UTC)
PERIOD, PATTERN = timedelta(minutes=5), "*/5 * * * *"
AN_HOUR = timedelta(hours=1) // PERIOD
STEP, FROZEN_FOR = timedelta(minutes=1), timedelta(minutes=3)

NAMES = ("alpha", "beta", "gamma")
#: Where a ticking host stands when it knows that an instant is due and has not acted on it.
TICKING = StopAt(point="before fire", signal=signal.SIGSTOP)
#: Longer than a tick: whoever looks comes there before the first goes on.
WIDE = {"before fire": 0.15}
SOON = 30.0


@dataclass(slots=True, kw_only=True)
class Day:
    """So many hours of it, a step of which takes `pause` real seconds.

    Once an hour, about an instant, one host is restarted, by turns killed and asked. In the hours of
    `frozen_in` it then stops as it ticks, for `freeze_seconds` of real time. Without names all work on the
    shared queue alone.
    """

    fleet: Fleet
    knobs: Knobs
    hours: int
    frozen_in: Collection[int]
    pause: float
    freeze_seconds: float
    are_named: bool
    chance: random.Random = field(default_factory=lambda: random.Random(3))
    restarts: int = 0
    freezes: int = 0

    def play(self) -> Mapping[str, object]:
        """See that every instant becomes one job, whatever happens to the hosts meanwhile; the figures."""
        fleet, time = self.fleet, SimulatedTime(self.fleet.home / "clock", START)
        triggers = TriggersFile(fleet.home / "triggers.json")
        triggers.write(cron("steady", PATTERN, fleet.place("folder")))
        self.knobs = replace(self.knobs, schedule_clock=str(time), delays=WIDE)
        workers = [self._worker(name, triggers) for name in NAMES]
        for worker in workers:
            self._start(worker)
        for worker in workers:
            worker.until_said("worker_started")
        for number, instant in enumerate(self._instants()):
            hour, of_hour = divmod(number, AN_HOUR)
            time.run(instant, step=STEP, pause=self.pause)
            if of_hour == AN_HOUR // 2:
                # While it is looked at, enqueued, run or recorded.
                sleep(self.chance.uniform(0, 0.6))
                self._restart(workers[hour % len(workers)], hour)
            self._until_over(instant, time)
        return self._judged()

    def _instants(self) -> Iterator[datetime]:
        return (START + number * PERIOD for number in range(1, self.hours * AN_HOUR + 1))

    def _worker(self, name: str, triggers: TriggersFile) -> WorkerProcess:
        environment = {
            **triggers.environment,
            "TZ": "UTC",
            # A day of kills is no fault of the job.
            "PI_SCHEDULER_STALL_MAX": "100",
            **({} if self.are_named else {"PI_WORKER_NAME": ""}),
        }
        return self.fleet.worker(name, concurrency=2, environment=environment)

    def _start(self, worker: WorkerProcess, stop_at: StopAt | None = None) -> None:
        machine = None if self.are_named else worker.name
        worker.start(replace(self.knobs, machine=machine, stop_at=stop_at), ready=False)

    def _restart(self, worker: WorkerProcess, hour: int) -> None:
        if hour % 2:
            assert worker.terminate() == 0, worker.complaint()
        else:
            worker.kill()
        said = worker.said_so_far()
        self._start(worker, TICKING if hour in self.frozen_in else None)
        if hour in self.frozen_in:
            worker.until_said("worker_started", after=said)
        self.restarts += 1

    def _until_over(self, instant: datetime, time: SimulatedTime) -> None:
        """Wait for the job of the instant; hosts that freeze at it stand still for their time first."""
        job_id = occurrence("steady", instant)
        self.fleet.job_ids.append(job_id)
        try:
            self._until(lambda: self._is_over(job_id) or self._frozen(), f"{job_id} is over")
            # It may have ended on a host that froze right after, which has its record.
            while frozen := self._frozen():
                slowly = self.freeze_seconds / (FROZEN_FOR / STEP)
                time.run(instant + FROZEN_FOR, step=STEP, pause=slowly)
                # Enqueued at least: where the frozen one has sent that in its last moment, it may have it.
                assert self.fleet.statuses([job_id]) != [None]
                for worker in frozen:
                    worker.thaw()
                self.freezes += len(frozen)
                self._until(lambda: self._is_over(job_id) or self._frozen(), f"{job_id} is over and recorded")
        except AssertionError as error:
            workers = self.fleet.workers.values()
            states = {worker.name: (worker.returncode, _stands_still(worker)) for worker in workers}
            lately = "\n".join(f"{worker.name}: {worker.events()[-15:]}" for worker in workers)
            error.add_note(f"{job_id} {self.fleet.hash_of(job_id)}, the workers {states}\n{lately}")
            error.add_note(self.fleet.complaints())
            raise

    def _until(self, condition: Callable[[], object], what: str) -> None:
        until(condition, seconds=SOON, what=what)

    def _is_over(self, job_id: str) -> bool:
        return self.fleet.how_many_are_over([job_id]) == 1 and not self.fleet.has_unwritten_records()

    def _frozen(self) -> list[WorkerProcess]:
        return [worker for worker in self.fleet.workers.values() if _stands_still(worker)]

    def _judged(self) -> Mapping[str, object]:
        fleet, wanted = self.fleet, list(self._instants())
        assert (self.freezes, self.restarts) == (len(self.frozen_in), self.hours)
        assert sorted(known_occurrences(fleet, "steady")) == wanted
        assert fleet.events("schedule_occurrence_skipped") == []
        ended = outcomes(fleet.require_sound(tidy_seconds=15))
        # Who was killed or asked to stop while it ran one did not run it twice.
        assert set(ended) <= {"completed", "failed/stalled", "failed/worker-lost", "policy/worker-abort"}, (
            ended
        )
        assert fleet.complaints() == ""
        by_host = Counter(record["host"] for records in recorded(fleet).values() for record in records)
        return {
            "occurrences": len(wanted),
            "restarts": self.restarts,
            "freezes": self.freezes,
            "byHost": by_host,
            "outcomes": ended,
        }


def _stands_still(worker: WorkerProcess) -> bool:
    stat = Path(f"/proc/{worker.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"
