"""What a test may turn at a worker process: its timings, and what happens at the points of its steps."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dispatch.queue.timings import Timings
from dispatch.worker.timings import WorkerTimings

#: Production's order of things in a twentieth of the time. `grace` stays above the longest wait of a client
#: (`pop_block` and five seconds), `late` and `gone` above what a busy machine lets a beat be late.
QUICK = WorkerTimings(
    job_limit=60,
    deadline_slack=30,
    scope_recheck=1,
    backoff_base=0.5,
    pop_block=0.5,
    pause_recheck=0.1,
    promote_every=0.2,
    sweep_every=0.3,
    reap_every=1,
    record_every=0.5,
    host_beat_every=0.5,
    host_row_ttl=6,
    tick_every=0.1,
    schedules_retry=0.5,
    schedules_review=1,
    orders_every=0.1,
    upkeep_every=0.5,
    valkey_retry_max=0.5,
    queue=Timings(beat_every=0.5, late=4, gone=6, grace=6, execution_ttl=10),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAt:
    """Where the worker sends itself a signal: the `nth` time that it reaches `point` once `armed_by` was."""

    point: str
    nth: int = 1
    armed_by: str | None = None
    signal: int = signal.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """`delays`: seconds to wait at a point. `gates`: a file that a point waits for, see `Points`.

    `without_containers`: only queue, money and records are real (`tests.harness.null_runs`).
    `memory_bytes`: what a container may have instead of production's 4 GiB. `engine_seconds`: how long the
    engine may take for what changes something, instead of a minute; questions may take a third of it.
    `repositories`: take jobs of a forge too, whose repositories are folders of this one
    (`tests.harness.forge_jobs`). `schedule_clock`: the file that tells schedules what time it is, instead of
    Valkey (`tests.harness.simulated_time`). `machine`: what the machine is called, instead of its name.
    """

    timings: WorkerTimings = QUICK
    delays: Mapping[str, float] = field(default_factory=dict)
    gates: Mapping[str, str] = field(default_factory=dict)
    stop_at: StopAt | None = None
    without_containers: bool = False
    memory_bytes: int | None = None
    engine_seconds: float | None = None
    repositories: str | None = None
    schedule_clock: str | None = None
    machine: str | None = None

    def to_json(self) -> str:
        """Write them for the worker's command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Knobs:
        """Read them in the worker."""
        values: dict[str, Any] = json.loads(text)
        timings = values.pop("timings")
        queue = Timings(**timings.pop("queue"))
        stop_at = values.pop("stop_at")
        return cls(
            timings=WorkerTimings(**timings, queue=queue),
            stop_at=StopAt(**stop_at) if stop_at else None,
            **values,
        )


class Points:
    """What happens at the named points; called by any thread of the worker.

    A point with a gate adds a byte to the file `<gate>.reached` each time it is reached, and goes on when
    the file `<gate>` is there (see `tests.harness.gate`).
    """

    def __init__(self, knobs: Knobs) -> None:
        self._knobs = knobs
        self._lock = threading.Lock()
        self._times = 0
        self._armed = knobs.stop_at is None or knobs.stop_at.armed_by is None

    def __call__(self, point: str) -> None:
        gate = self._knobs.gates.get(point)
        if gate is not None:
            with Path(f"{gate}.reached").open("ab") as marks:
                marks.write(b".")
            while not Path(gate).exists():
                time.sleep(0.01)
        time.sleep(self._knobs.delays.get(point, 0))
        stop = self._knobs.stop_at
        if stop is not None and self._is_due(point, stop):
            os.kill(os.getpid(), stop.signal)

    def _is_due(self, point: str, stop: StopAt) -> bool:
        with self._lock:
            self._armed |= point == stop.armed_by
            if not self._armed or point != stop.point:
                return False
            self._times += 1
            return self._times == stop.nth
