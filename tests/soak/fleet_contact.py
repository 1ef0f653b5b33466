"""A host that stands still for five minutes, and one whose packets to Valkey are dropped for one."""

from __future__ import annotations

from dataclasses import replace

from dispatch.worker.timings import WorkerTimings
from tests.harness.knobs import QUICK, Knobs
from tests.harness.lost_contact import cut_off, stand_still
from tests.soak.stage import Clock, stage

#: Whoever is silent for four seconds is given up.
HASTY = replace(QUICK, queue=replace(QUICK.queue, beat_every=0.2, late=2.5, gone=4))


def run(*, short: bool) -> dict[str, object]:
    """Production's timings unless short."""
    clock = Clock()
    with stage() as (fleet, _):
        knobs = Knobs(timings=HASTY if short else WorkerTimings())
        silence, delays = (7, (3, 5)) if short else (300, (20, 40, 60, 150))
        settled = stand_still(fleet, knobs, silence=silence, delays=delays)
    with stage() as (fleet, _):
        patient = replace(HASTY, queue=replace(HASTY.queue, gone=20))
        knobs = Knobs(timings=patient if short else WorkerTimings())
        seconds = 5 if short else 60
        healed = cut_off(fleet, knobs, seconds=seconds)
    return {
        "seconds": clock.seconds,
        "silence": silence,
        "settledAfter": round(settled, 1),
        "blind": seconds,
        "worksAgainAfter": round(healed, 1),
    }
