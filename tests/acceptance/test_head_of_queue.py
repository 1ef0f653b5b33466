"""Jobs that may not go yet stand at the head of the queue; those behind them go all the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dispatch.worker.timings import WorkerTimings
from hosts import keys as hosts_keys
from hosts import switches
from tests.harness.knobs import Knobs
from tests.harness.operator_ground import OperatorGround

#: How soon who may go has started, in seconds.
SOON = 5


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("paused", [1, 50])
def test_who_may_go_starts_within_seconds_behind_others_that_may_not(fleet, concurrency, paused):
    files = OperatorGround(fleet.home / "operator")
    folders = [fleet.place(f"paused-{number}") for number in range(paused)]
    others = [fleet.place(f"other-{number}") for number in range(6)]
    files.pause(*folders)
    files.says(3)
    worker = fleet.worker(concurrency=concurrency, environment=files.environment)
    worker.start(Knobs(timings=WorkerTimings(), without_containers=True))
    switches.pause(fleet.client, (hosts_keys.FLEET,), by="acceptance", reason="")

    held = [fleet.enqueue(folder) for folder in folders]
    held.append(fleet.enqueue(others.pop(), wait_for=({"profile": "check"},)))
    eligible = [fleet.enqueue(folder) for folder in others]
    assert fleet.client.llen("rq:queue:pi-jobs") == len(held) + len(eligible)
    resumed = datetime.now(UTC)
    switches.resume_all(fleet.client)
    fleet.until_over(eligible, seconds=10)

    took = max(
        (datetime.fromisoformat(fleet.record(one)["startedAt"]) - resumed).total_seconds() for one in eligible
    )
    assert took <= SOON
    assert fleet.statuses(held) == [b"scheduled"] * len(held)
    assert {fleet.hash_of(one)[b"reason"] for one in held} == {b"pause-window", b"wait"}
