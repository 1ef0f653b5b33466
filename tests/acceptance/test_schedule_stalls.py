"""A schedule whose jobs kill their worker is taken out for good, until a person changes something."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

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
DEADLY = ("edited", "restored")


def test_schedules_that_kill_their_worker_too_often_are_torn_down_until_they_are_changed(fleet):
    # Beginning now: the command that restores goes by the real clock.
    time = SimulatedTime(fleet.home / "clock", datetime.now(UTC))
    triggers = TriggersFile(fleet.home / "triggers.json")
    environment = {**triggers.environment, "TZ": "UTC", "PI_SCHEDULER_STALL_MAX": "1"}
    worker = fleet.worker(environment=environment)
    knobs = replace(KNOBS, schedule_clock=str(time))
    edited, restored = (cron(name, "*/5 * * * *", fleet.place(name, delay="30")) for name in DEADLY)
    triggers.write(edited, restored)

    for _ in range(2):
        # When the jobs of both have begun, and neither has ended.
        worker.start(replace(knobs, stop_at=StopAt(point="after begin", nth=2)))
        time.set(time.now + PERIOD)
        until(lambda: worker.returncode is not None, seconds=30, what="their jobs kill the worker")
    for name in DEADLY:
        fleet.ground.order(name, {"delay": "0"})
    worker.start(knobs)
    until(lambda: len(fleet.events("scheduler_torn_down")) == 2, seconds=30, what="they are torn down")
    time.set(time.now + PERIOD)
    # By a restart they do not come back.
    worker.terminate()
    worker.start(knobs)
    assert fleet.client.hkeys(keys.definitions(SHARED_QUEUE)) == []
    assert [len(known_occurrences(fleet, name)) for name in DEADLY] == [2, 2]

    triggers.write({**edited, "run": {**edited["run"], "task": "Do it otherwise."}}, restored)
    until(lambda: _goes_on(fleet, time, "edited"), seconds=30, what="the edited one goes on")
    assert len(known_occurrences(fleet, "restored")) == 2
    command = {"VALKEY_URL": fleet.url, "PI_STATE_DIR": str(worker.state_dir)}
    assert manage(command, "triggers", "--restore", "restored").returncode == 0
    until(lambda: _goes_on(fleet, time, "restored"), seconds=30, what="the restored one goes on")

    for name in DEADLY:
        fleet.job_ids += known_occurrences(fleet, name).values()
    fleet.until_over(seconds=30)
    found = outcomes(fleet.require_sound())
    assert (found["failed/stalled"], found.keys()) == (4, {"failed/stalled", "completed"})
    assert [one["stalls"] for one in fleet.events("scheduler_torn_down")] == [2, 2]
    assert fleet.complaints() == ""


def _goes_on(fleet, time, schedule_id):
    """Let time go by until it has fired once more."""
    time.set(time.now + timedelta(minutes=1))
    return len(known_occurrences(fleet, schedule_id)) > 2
