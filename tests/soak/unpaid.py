"""Valkey full, unwritable, frozen, stopped and killed right when jobs are to be paid for, on two hosts."""

from __future__ import annotations

from dataclasses import replace

from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.outages import FROZEN, FULL, KILLED, OUTAGES
from tests.harness.unpaid import Unpaid
from tests.soak.stage import Clock, stage

#: A beat is old, and an owner gone, before the longer of these outages is over.
KNOBS = Knobs(timings=replace(QUICK, queue=replace(QUICK.queue, late=3, gone=6)))


def run(*, short: bool) -> dict[str, object]:
    """Each of them for 8 s at each of the three moments; short: some of them, for half a second."""
    outages, seconds = ((FULL, FROZEN, KILLED), 0.5) if short else (OUTAGES, 8.0)
    clock = Clock()
    with stage() as (fleet, server):
        unpaid = Unpaid(fleet, server, hosts=2, concurrency=2, knobs=KNOBS)
        for outage in outages:
            unpaid.at_the_reservation(outage, seconds=seconds)
            unpaid.at_the_wait_check(outage, seconds=seconds)
        for outage in outages[-1:] if short else outages:
            unpaid.at_the_token_cap(outage, seconds=seconds)
        unpaid.require_sound()
        evidence = fleet.evidence()
        return {
            "seconds": clock.seconds,
            "outages": [str(outage) for outage in outages],
            "jobs": len(evidence.jobs),
            "containers": len(evidence.lives or ()),
            "counted": evidence.counted,
            "outcomes": outcomes(evidence),
            "putBacks": len(fleet.events("job_put_back")),
        }
