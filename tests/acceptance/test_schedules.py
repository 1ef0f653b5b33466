"""Standing work on whole workers by a simulated clock: what becomes a job, what is skipped, what piles up."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dispatch.schedules.table import Table
from tests.harness.gate import Gate
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.simulated_day import PERIOD, START, STEP, Day
from tests.harness.simulated_time import SimulatedTime
from tests.harness.standing_work import TriggersFile, cron, known_occurrences
from tests.harness.worker_process import start_all, until

KNOBS = Knobs(without_containers=True)
LONGER_THAN_A_TICK = 0.3


@pytest.mark.parametrize("are_named", [pytest.param(False, id="one queue"), pytest.param(True, id="named")])
def test_each_instant_becomes_one_job_whichever_host_freezes_or_is_killed(fleet, are_named):
    day = Day(
        fleet=fleet, knobs=KNOBS, hours=1, frozen_in=(0,), pause=0.02, freeze_seconds=0.8, are_named=are_named
    )

    assert day.play()["occurrences"] == 12


class Standing:
    """One host with a triggers file and a clock of its own."""

    def __init__(self, fleet, *, now=START, **environment):
        self.fleet = fleet
        self.time = SimulatedTime(fleet.home / "clock", now)
        self.triggers = TriggersFile(fleet.home / "triggers.json")
        self.worker = fleet.worker(environment={**self.triggers.environment, "TZ": "UTC", **environment})
        self.knobs = replace(KNOBS, schedule_clock=str(self.time))

    def start(self, *entries):
        self.triggers.write(*entries)
        self.worker.start(self.knobs)

    def instants(self, schedule_id):
        return sorted(known_occurrences(self.fleet, schedule_id))

    def until_fired(self, schedule_id, *instants):
        wanted = list(instants)
        what = f"{schedule_id} has fired at {wanted}"
        until(lambda: self.instants(schedule_id) == wanted, seconds=30, what=what)

    def skipped(self, schedule_id):
        """How many instants the log says that were left out."""
        enqueued = self.fleet.events("occurrence_enqueued")
        return sum(one.get("skipped", 0) for one in enqueued if one["schedulerId"] == schedule_id)

    def settle(self, *schedule_ids):
        """Wait until all that was fired is over, and judge it."""
        for schedule_id in schedule_ids:
            self.fleet.job_ids += known_occurrences(self.fleet, schedule_id).values()
        self.fleet.until_over(seconds=30)
        evidence = self.fleet.require_sound()
        assert self.fleet.complaints() == ""
        return outcomes(evidence)


def test_a_job_that_takes_longer_than_its_period_meets_no_other_and_nothing_piles_up(fleet):
    host, gate = Standing(fleet), Gate(fleet.home / "gate")
    host.knobs = replace(host.knobs, gates={"before end": str(gate)})
    host.start(cron("slow", "*/5 * * * *", fleet.place("folder")))

    for periods in (5, 3):
        # The first one runs until the gate is opened, the second one waits, and the others are skipped.
        begun, waiting = (host.time.now + PERIOD * number for number in (1, 2))
        before = host.instants("slow")
        host.time.set(begun)
        gate.until_arrived(1)
        host.time.set(waiting)
        host.until_fired("slow", *before, begun, waiting)
        for _ in range(periods - 2):
            host.time.run(host.time.now + PERIOD, step=PERIOD, pause=LONGER_THAN_A_TICK)
        assert host.instants("slow") == [*before, begun, waiting]
        states = Counter(fleet.statuses(list(known_occurrences(fleet, "slow").values())))
        assert (states[b"started"], states[b"queued"] + states[b"scheduled"]) == (1, 1), states
        assert gate.arrived == 1
        gate.open()
        fleet.until_over(list(known_occurrences(fleet, "slow").values()), seconds=30)
        gate.close()

    gate.open()
    host.time.set(host.time.now + PERIOD)
    until(lambda: len(host.instants("slow")) == 5, seconds=30, what="the next one is fired")
    assert host.settle("slow") == {"completed": 5}
    # All of the nine instants are accounted for, and each time that some were skipped is told.
    assert 5 + host.skipped("slow") == 9
    assert len(fleet.events("schedule_occurrence_skipped")) == 2


def test_after_eight_hours_of_sleep_each_schedule_catches_up_once_and_tells_what_it_left_out(fleet):
    host = Standing(fleet)
    host.start(
        *(
            cron(name, pattern, fleet.place(name))
            for name, pattern in (("ten", "*/10 * * * *"), ("hour", "@hourly"), ("noon", "0 12 * * *"))
        )
    )
    host.time.run(START + timedelta(minutes=10), step=STEP, pause=0.06)
    host.until_fired("ten", START + timedelta(minutes=10))

    host.worker.freeze()
    host.time.set(START + timedelta(hours=8, minutes=15))
    host.worker.thaw()

    host.until_fired("ten", START + timedelta(minutes=10), START + timedelta(hours=8, minutes=10))
    host.until_fired("hour", START + timedelta(hours=8))
    # From then on as if nothing had been.
    host.time.run(START + timedelta(hours=8, minutes=20), step=STEP, pause=0.06)
    caught_up = START + timedelta(hours=8, minutes=10)
    host.until_fired("ten", START + timedelta(minutes=10), caught_up, START + timedelta(hours=8, minutes=20))
    assert host.instants("noon") == []
    assert host.settle("ten", "hour") == {"completed": 4}
    assert (host.skipped("ten"), host.skipped("hour")) == (47, 7)


def test_an_edit_counts_once_both_hosts_have_it_and_what_went_while_they_were_down_is_gone(fleet):
    files = {name: TriggersFile(fleet.home / f"{name}.json") for name in ("alpha", "beta")}
    old, new = (cron(name, "0 3 * * *", fleet.place(name)) for name in ("old", "new"))
    workers = [
        fleet.worker(name, environment={**file.environment, "TZ": "UTC"}) for name, file in files.items()
    ]

    def installed():
        return [list(Table(fleet.client, worker.queue).resident()) for worker in workers]

    for file in files.values():
        file.write(old)
    start_all(workers, KNOBS)
    assert installed() == [["old"], ["old"]]

    files["alpha"].write(new)
    workers[0].until_said("cron_divergence_refused")
    assert installed() == [["old"], ["old"]]
    files["beta"].write(new)
    until(lambda: installed() == [["new"], ["new"]], seconds=30, what="both follow")

    for worker in workers:
        assert worker.terminate() == 0
    for file in files.values():
        file.write()
    start_all(workers, KNOBS)
    until(lambda: installed() == [[], []], seconds=30, what="no orphan is left")
    assert fleet.complaints() == ""


def test_after_a_day_and_a_half_a_machine_of_another_zone_goes_on(fleet):
    # Shanghai is at UTC+8 and New York at UTC-5: nine o'clock is 1:00 UTC, and 14:00.
    entries = [
        cron(name, "0 9 * * *", fleet.place(name), tz=tz)
        for name, tz in (("own", "Asia/Shanghai"), ("host", None))
    ]
    before = Standing(fleet, now=datetime(2026, 3, 2, 5, 24, tzinfo=UTC), TZ="Asia/Shanghai")
    before.start(*entries)
    before.worker.terminate()
    host = Standing(fleet, now=datetime(2026, 3, 3, 17, 24, tzinfo=UTC), TZ="America/New_York")
    host.start(*entries)

    # Where the machine's own is meant, it is another nine o'clock from now on, and the old one is over.
    for schedule_id, missed, following in (
        ("own", [datetime(2026, 3, 3, 1, tzinfo=UTC)], datetime(2026, 3, 4, 1, tzinfo=UTC)),
        ("host", [], datetime(2026, 3, 4, 14, tzinfo=UTC)),
    ):
        host.until_fired(schedule_id, *missed)
        host.time.set(following - timedelta(seconds=1))
        time.sleep(LONGER_THAN_A_TICK)
        assert host.instants(schedule_id) == missed
        host.time.set(following)
        host.until_fired(schedule_id, *missed, following)
    assert host.settle("own", "host") == {"completed": 3}
