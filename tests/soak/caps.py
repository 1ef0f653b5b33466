"""Fifty hosts that reach for the last places of each spend window at the same moment."""

from __future__ import annotations

from dispatch.worker.timings import WorkerTimings
from tests.harness.cap_race import KINDS, CapRace
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.soak.stage import Clock, stage


def run(*, short: bool) -> dict[str, object]:
    """50 workers with one slot each, for one place and for three of each window; short: 12, for one."""
    workers, rounds = (12, (1,)) if short else (50, (1, 3))
    clock = Clock()
    with stage() as (fleet, _):
        race = CapRace(fleet, workers=workers, concurrency=1)
        # Production's pace: so many idle workers at the tests' own would leave no time for the race.
        knobs = Knobs(timings=WorkerTimings(), gates={"before reserve": str(race.gate)})
        race.start(knobs, seconds=30 + 6 * workers)
        booted = clock.seconds
        for places in rounds:
            for kind in KINDS:
                race.run(kind, places=places, seconds=180)
        evidence = fleet.require_sound(tidy_seconds=30)
        assert fleet.complaints() == ""
        return {
            "seconds": clock.seconds,
            "workers": workers,
            "bootedAfter": booted,
            "races": len(rounds) * len(KINDS),
            "jobs": len(evidence.jobs),
            "containers": len(evidence.lives or ()),
            "counters": {str(kind): count for kind, count in race.counters().items()},
            "outcomes": outcomes(evidence),
        }
