"""A schedule whose jobs kill their worker is taken out for good, until a person changes something."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dispatch.schedules import keys
from hosts.names import SHARED_QUEUE
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs, StopAt
from tests.harness.manage import manage
from tests.harness.simulated_day import PERIOD
from tests.harness.simulated_time import SimulatedTime
from tests.harness.standing_work import TriggersFile, cron, known_occurrences
from tests.harness.worker_process import until

KNOBS = Knobs(without_containers=True)


@pytest.mark.parametrize("brings_back", ["edit", "restore"])
def test_a_schedule_that_kills_its_worker_too_often_is_torn_down_until_it_is_changed(fleet, brings_back):
    # Beginning now: the command that restores goes by the real clock.
    time = SimulatedTime(fleet.home / "clock", datetime.now(UTC))
    triggers = TriggersFile(fleet.home / "triggers.json")
    environment = {**triggers.environment, "TZ": "UTC", "PI_SCHEDULER_STALL_MAX": "1"}
    worker = fleet.worker(environment=environment)
    knobs = replace(KNOBS, schedule_clock=str(time))
    deadly = cron("deadly", "*/5 * * * *", fleet.place("folder"))
    triggers.write(deadly)

    for _ in range(2):
        worker.start(replace(knobs, stop_at=StopAt(point="after begin")))
        time.set(time.now + PERIOD)
        until(lambda: worker.returncode is not None, seconds=10, what="its job kills the worker")
    worker.start(knobs)
    until(lambda: fleet.events("scheduler_torn_down"), seconds=10, what="it is torn down")
    time.set(time.now + PERIOD)
    # By a restart it does not come back.
    worker.terminate()
    worker.start(knobs)
    assert fleet.client.hkeys(keys.definitions(SHARED_QUEUE)) == []
    assert len(known_occurrences(fleet, "deadly")) == 2

    if brings_back == "edit":
        triggers.write({**deadly, "run": {**deadly["run"], "task": "Do it otherwise."}})
    else:
        command = {"VALKEY_URL": fleet.url, "PI_STATE_DIR": str(worker.state_dir)}
        assert manage(command, "triggers", "--restore", "deadly").returncode == 0
    until(lambda: _goes_on(fleet, time), seconds=15, what="it goes on")

    fleet.job_ids += known_occurrences(fleet, "deadly").values()
    fleet.until_over(seconds=10)
    found = outcomes(fleet.require_sound())
    assert (found["failed/stalled"], found.keys()) == (2, {"failed/stalled", "completed"})
    assert [one["stalls"] for one in fleet.events("scheduler_torn_down")] == [2]
    assert fleet.complaints() == ""


def _goes_on(fleet, time):
    """Let time go by until it has fired once more."""
    time.set(time.now + timedelta(minutes=1))
    return len(known_occurrences(fleet, "deadly")) > 2
