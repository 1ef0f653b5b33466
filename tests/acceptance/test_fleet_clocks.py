from __future__ import annotations

from tests.conftest import absent
from tests.harness import clocks_apart, wrong_clock
from tests.harness.knobs import Knobs


def test_clocks_five_minutes_ahead_and_behind_decide_nothing_and_are_named(fleet):
    if wrong_clock.library() is None:
        absent("no libfaketime")
    clocks_apart.start(fleet, Knobs(without_containers=True, repositories=str(fleet.ground.home)))

    clocks_apart.play(fleet, sleep=3, jobs=9)

    clocks_apart.require_seen(fleet)
    assert fleet.complaints() == ""
