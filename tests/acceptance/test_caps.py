"""Spend caps as whole workers keep them: nobody gets more than was allowed, and a raised cap is heard."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from dispatch.ids import rq_id
from dispatch.money.windows import Window
from tests.harness.cap_race import CapRace, Kind, Ledger
from tests.harness.evidence import counted_starts
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.worker_process import ROOT, until

#: From the command's end to the last container.
HEARD_SECONDS = 5


def _settings(worker, *words):
    """Run `manage.py settings` on a worker's host."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "settings", *words],
        env=dict(worker.environment),
        check=True,
        capture_output=True,
        timeout=30,
    )


def _asleep_at_the_cap(fleet):
    return fleet.client.zcard("waiters:pi-jobs:cap")


@pytest.mark.docker
def test_of_many_workers_at_the_last_places_exactly_the_allowed_number_gets_a_container(contained):
    race = CapRace(contained, workers=4, concurrency=3)
    race.start(Knobs(gates={"before reserve": str(race.gate)}), seconds=30)

    race.run(Kind(Ledger.FLEET, Window.WEEK), places=1, seconds=30)
    race.run(Kind(Ledger.SCOPE, Window.DAY), places=1, seconds=30)

    contained.require_sound()
    assert contained.complaints() == ""


@pytest.mark.docker
def test_jobs_parked_at_a_cap_start_soon_after_it_is_raised_and_no_sooner(contained):
    fleet = contained
    shared = {"PI_CAP_ACTION": "park", "PI_SETTINGS_FILE": str(fleet.home / "settings.json")}
    workers = [
        fleet.worker(name, concurrency=3, daily_cap=2, environment=shared) for name in ("alpha", "beta")
    ]
    for worker in workers:
        worker.start(Knobs(), ready=False)
    for worker in workers:
        worker.until_said("worker_started", seconds=60)
    job_ids = [fleet.enqueue(fleet.folder(f"folder-{number}")) for number in range(8)]
    until(lambda: _asleep_at_the_cap(fleet) == 6, seconds=30, what="six jobs are parked")
    fleet.until_over([job_id for job_id in job_ids if fleet.statuses([job_id]) != [b"scheduled"]], seconds=10)
    boots = len(fleet.events("worker_started"))
    assert (len(fleet.lives()), counted_starts(fleet.client)) == (2, (2, 2))

    _settings(workers[0], "--set", "dailyCap=7")
    raised_at = time.time()
    until(
        lambda: sum(map(len, [life.started for life in fleet.lives()])) == 7,
        seconds=HEARD_SECONDS,
        what="all but one run",
    )
    assert max(life.started[0] for life in fleet.lives()) - raised_at < HEARD_SECONDS
    until(lambda: _asleep_at_the_cap(fleet) == 1, seconds=5, what="the last one sleeps again")
    assert (len(fleet.lives()), counted_starts(fleet.client)) == (7, (7, 7))

    _settings(workers[1], "--set", "dailyCap=8")
    fleet.until_over(seconds=HEARD_SECONDS + 5)
    evidence = fleet.require_sound()
    assert outcomes(evidence) == {"completed": 8}
    assert len(fleet.events("worker_started")) == boots
    assert fleet.complaints() == ""


@pytest.mark.parametrize("action", ["refuse", "park"])
def test_a_hundred_attempts_at_a_full_cap_change_no_counter(fleet, action):
    settings = fleet.home / "settings.json"
    shared = {"PI_CAP_ACTION": action, "PI_SETTINGS_FILE": str(settings), "PI_WEEKLY_CAP": "50"}
    worker = fleet.worker(daily_cap=3, environment=shared)
    worker.start(Knobs(without_containers=True))
    first = [fleet.enqueue(fleet.folder(f"folder-{number}")) for number in range(3)]
    fleet.until_over(first, seconds=10)
    before = _spend(fleet)
    places = [fleet.ground.home / f"folder-{number % 3}" for number in range(100)]

    if action == "refuse":
        refused = [fleet.enqueue(place) for place in places]
        fleet.until_over(seconds=30)
        records = fleet.records(refused).values()
        assert {(one["reason"], one["budgetReserved"]) for one in records} == {("over-budget", False)}
    else:
        parked = [fleet.enqueue(place) for place in places[:25]]
        pops = {job_id: set() for job_id in parked}
        for times in range(1, 6):
            until(
                lambda times=times: _parked_by_pops(fleet, pops) >= 25 * times,
                seconds=20,
                what=f"all are parked for the {times}. time",
            )
            # Another window's cap: it wakes them all, and helps none.
            settings.write_text(json.dumps({"weeklyCap": 50 + times}))

    assert _spend(fleet) == before
    assert len(fleet.ground.spans()) == 3


def _parked_by_pops(fleet, pops):
    """How many pops have parked a job so far, seen by the token that each leaves with it."""
    for job_id, seen in pops.items():
        left = fleet.client.hget(f"rq:job:{rq_id(job_id)}", "left")
        seen.update({left} if left else ())
    return sum(map(len, pops.values()))


def _spend(fleet):
    """Every key of the ledgers with all that it says, but for the lifetimes, which run off."""
    return {key: fleet.client.dump(key) for key in fleet.client.scan_iter("budget:*")}
