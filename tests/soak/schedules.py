"""A day of a schedule of every five minutes on three hosts that freeze and are restarted."""

from __future__ import annotations

from tests.harness.knobs import Knobs
from tests.harness.simulated_day import Day
from tests.soak.stage import Clock, stage

#: Without names three machines share one queue and one table; with names each host has its own.
FORMS = {"shared": False, "named": True}


def run(*, short: bool) -> dict[str, object]:
    """24 simulated hours in each form; short: two. Hosts freeze for longer than one is waited for."""
    hours, frozen_in = (2, (0, 1)) if short else (24, (3, 15))
    return {form: _play(hours, frozen_in, are_named=are_named) for form, are_named in FORMS.items()}


def _play(hours: int, frozen_in: tuple[int, ...], *, are_named: bool) -> dict[str, object]:
    clock = Clock()
    knobs = Knobs(without_containers=True)
    with stage(containers=False) as (fleet, _):
        day = Day(
            fleet=fleet,
            knobs=knobs,
            hours=hours,
            frozen_in=frozen_in,
            pause=0.03,
            freeze_seconds=knobs.timings.queue.gone + 3,
            are_named=are_named,
        )
        figures = day.play()
        return {"seconds": clock.seconds, "simulatedHours": hours, **figures}
