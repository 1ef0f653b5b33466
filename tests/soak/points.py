"""Each transition of a job interrupted by SIGKILL at each of its points, then a worker that puts it right."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hosts import keys as hosts_keys
from hosts import switches
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs, StopAt
from tests.harness.worker_process import WorkerProcess, until
from tests.soak.stage import Clock, stage

#: Waiting for a busy folder takes long enough that only being woken ends it in the ordinary course.
TIMINGS = replace(QUICK, scope_recheck=4)

COMPLETED = {"completed": 1}
BOTH_COMPLETED = {"completed": 2}
STALLED = {"failed/stalled": 1}
ONE_STALLED = {"completed": 1, "failed/stalled": 1}
REFUSED = {"policy/job-image-missing": 1}
FAILED_TWICE = {"failed": 1}
WORKER_LOST = {"failed/worker-lost": 1}

# A look at an empty queue is a pop too; this one follows a job that was handed over.
AFTER_CLAIM = StopAt(point="after pop", armed_by="after move")
AFTER_BEGIN = StopAt(point="after begin")
BEFORE_BEGIN = StopAt(point="before begin")

Scenario = Callable[[Fleet, WorkerProcess, Knobs], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Where the worker dies, on what way it comes there, and how the jobs may end when the next one has run.

    `before`: points at which earlier workers die first, one after the other.
    """

    point: str
    scenario: Scenario
    ends: tuple[Mapping[str, int], ...]
    armed_by: str | None = None
    before: tuple[StopAt, ...] = ()
    engine_only: bool = False
    knobs: Knobs = field(default_factory=lambda: Knobs(timings=TIMINGS))


def _one_job(fleet: Fleet, worker: WorkerProcess, knobs: Knobs) -> None:
    """One job that comes while the worker waits for one."""
    worker.start(knobs)
    until(lambda: _waiting(fleet), seconds=10, what="the worker waits for a job")
    fleet.enqueue(fleet.folder("folder", delay="0.2"))


def _failing_job(fleet: Fleet, worker: WorkerProcess, knobs: Knobs) -> None:
    """One job whose two attempts fail."""
    fleet.enqueue(fleet.folder("folder", exit_code="1"))
    worker.start(knobs, ready=False)


def _two_jobs_of_a_folder(fleet: Fleet, worker: WorkerProcess, knobs: Knobs) -> None:
    """Two jobs at once on one folder: the second has to sleep."""
    folder = fleet.folder("folder", delay="1.5")
    fleet.enqueue(folder)
    fleet.enqueue(folder)
    worker.start(knobs, ready=False)


def _missing_image(fleet: Fleet, worker: WorkerProcess, knobs: Knobs) -> None:
    """One job whose image is not there."""
    fleet.enqueue(fleet.folder("folder"), image="pi-dispatch-absent:none")
    worker.start(knobs, ready=False)


def _paused_at_the_last_moment(fleet: Fleet, worker: WorkerProcess, knobs: Knobs) -> None:
    """One job that is paid for when the fleet is paused, for a while."""
    gate = fleet.home / "gate"
    fleet.enqueue(fleet.folder("folder"))
    worker.start(replace(knobs, gates={"before begin": str(gate)}), ready=False)
    until(gate.with_name("gate.reached").exists, seconds=20, what="the job is about to begin")
    switches.pause(fleet.client, (hosts_keys.FLEET,), by="soak", reason="", lasting=timedelta(seconds=3))
    gate.touch()


def _waiting(fleet: Fleet) -> bool:
    return fleet.all_wait(1)


CASES = (
    Case(point="after move", scenario=_one_job, ends=(COMPLETED,)),
    *(
        Case(point=point, armed_by="after move", scenario=_one_job, ends=(COMPLETED,))
        for point in ("before pop", "after pop")
    ),
    *(
        Case(point=point, scenario=_one_job, ends=(COMPLETED,))
        for point in ("before reserve", "after reserve", "before begin")
    ),
    Case(point="after begin", scenario=_one_job, ends=(STALLED,)),
    *(
        Case(point=point, scenario=_one_job, ends=(STALLED,), engine_only=True)
        for point in ("before create", "after create", "before start", "after start")
    ),
    *(
        Case(point=point, armed_by="after start", scenario=_one_job, ends=(STALLED,), engine_only=True)
        for point in ("before remove", "after remove")
    ),
    Case(point="before end", scenario=_one_job, ends=(STALLED,)),
    *(
        Case(point=point, scenario=_one_job, ends=(COMPLETED,))
        for point in ("after end", "filed", "written", "removed")
    ),
    Case(point="before again", scenario=_failing_job, ends=(STALLED,)),
    Case(point="after again", scenario=_failing_job, ends=(FAILED_TWICE,)),
    Case(point="before promote", armed_by="after again", scenario=_failing_job, ends=(FAILED_TWICE,)),
    Case(point="after promote", scenario=_failing_job, ends=(FAILED_TWICE,)),
    *(
        Case(point=point, scenario=_two_jobs_of_a_folder, ends=(ONE_STALLED, BOTH_COMPLETED))
        for point in ("before put off", "after put off")
    ),
    *(
        Case(point=point, scenario=_two_jobs_of_a_folder, ends=(BOTH_COMPLETED,))
        for point in ("before wake", "after wake")
    ),
    Case(
        point="after promote", armed_by="after wake", scenario=_two_jobs_of_a_folder, ends=(BOTH_COMPLETED,)
    ),
    *(
        Case(point=point, scenario=_missing_image, ends=(REFUSED,))
        for point in ("before refuse", "after refuse")
    ),
    *(
        Case(point=point, scenario=_paused_at_the_last_moment, ends=(COMPLETED,))
        for point in ("before refund", "after refund", "before give back", "after give back")
    ),
    *(
        Case(point=point, before=(AFTER_CLAIM,), scenario=_one_job, ends=(COMPLETED,))
        for point in ("before put back", "after put back")
    ),
    *(
        Case(point=point, before=(AFTER_BEGIN,), scenario=_one_job, ends=(STALLED,))
        for point in ("before stall", "after stall")
    ),
    # A job that kills whoever takes it is given up.
    Case(point="before begin", before=(BEFORE_BEGIN,) * 5, scenario=_one_job, ends=(WORKER_LOST,)),
)
#: What the short form plays, without containers.
TELLING = frozenset(
    {
        *("after move", "after pop", "after reserve", "after begin", "before end", "after end", "filed"),
        *("before again", "after promote", "before wake", "after refund", "after put back", "after stall"),
    }
)


def run(*, short: bool) -> dict[str, object]:
    """All of them on real containers; short: the telling ones without."""
    cases = [case for case in CASES if not short or (case.point in TELLING and not case.engine_only)]
    clock = Clock()
    with ThreadPoolExecutor(2) as pool:
        faults = [fault for fault in pool.map(lambda case: _play(case, containers=not short), cases) if fault]
    assert not faults, "\n\n".join(faults)
    points = sorted({case.point for case in cases})
    return {"seconds": clock.seconds, "cases": len(cases), "points": points}


def _play(case: Case, *, containers: bool) -> str | None:
    """Play one case; what went wrong with it, or None."""
    name = f"{case.point} ({(case.scenario.__doc__ or '').strip()})"
    with stage(containers=containers) as (fleet, _):
        try:
            _interrupt(case, fleet, containers=containers)
        except Exception as fault:  # noqa: BLE001 - the others are to be played all the same
            said = "\n  ".join(json.dumps(event) for event in fleet.events()[-20:])
            return f"{name} {type(fault).__name__}: {fault}\n  {said}\n{fleet.complaints()}"
    return None


def _interrupt(case: Case, fleet: Fleet, *, containers: bool) -> None:
    worker = fleet.worker(concurrency=2)
    knobs = replace(case.knobs, without_containers=not containers)
    first, *more = [*case.before, StopAt(point=case.point, armed_by=case.armed_by)]
    case.scenario(fleet, worker, replace(knobs, stop_at=first))
    _until_killed(worker)
    for stop in more:
        worker.start(replace(knobs, stop_at=stop), ready=False)
        _until_killed(worker)
    worker.start(knobs)
    fleet.until_over(seconds=60)
    evidence = fleet.require_sound(tidy_seconds=20)
    assert outcomes(evidence) in case.ends, outcomes(evidence)


def _until_killed(worker: WorkerProcess) -> None:
    until(lambda: worker.returncode is not None, seconds=60, what="the worker comes to its point")
    assert worker.returncode == -signal.SIGKILL, worker.complaint()
