"""Three hosts, of which two have a clock that is five minutes off."""

from __future__ import annotations

from dispatch.worker.timings import WorkerTimings
from tests.harness import clocks_apart, wrong_clock
from tests.harness.knobs import QUICK, Knobs
from tests.soak.stage import Clock, stage


def run(*, short: bool) -> dict[str, object]:
    """Production's timings unless short; 60 jobs of one repository with one container at a time."""
    assert wrong_clock.library(), "no libfaketime; this soak needs it"
    timings, sleep, jobs = (QUICK, 3, 6) if short else (WorkerTimings(), 60, 60)
    clock = Clock()
    with stage(containers=False) as (fleet, _):
        repositories = str(fleet.ground.home)
        clocks_apart.start(fleet, Knobs(timings=timings, without_containers=True, repositories=repositories))
        late = clocks_apart.play(fleet, sleep=sleep, jobs=jobs)
        clocks_apart.require_seen(fleet)
        assert fleet.complaints() == ""
        return {"seconds": clock.seconds, "jobs": len(fleet.job_ids), "secondsLate": late}
