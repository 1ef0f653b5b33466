"""A schedule whose occurrences end with their workers again and again is taken out, once, where it stands."""

from __future__ import annotations

import pytest

from dispatch.ids import occurrence_id
from dispatch.schedules import keys
from dispatch.schedules.stall_guard import StallGuard
from pidispatch_site.clients import state_client
from runs.outcome import Reason
from tests.dispatch.queuekit import Host, age_beat, everything
from tests.dispatch.schedules.schedulekit import MINUTE, OTHER, QUEUE, START, Ground, schedule

JOB_ID = "repeat:tidy:1772532300000"
AT_MS = 1_772_532_400_000


@pytest.fixture
def guard(valkey):
    return StallGuard(valkey, most=2, clock_ms=lambda: AT_MS)


def test_one_more_than_allowed_takes_it_out(valkey, guard, events):
    ground = Ground(valkey, schedule(), schedule("other"), queues=(QUEUE, OTHER))
    for _ in range(2):
        guard.stalled(JOB_ID, QUEUE)
    assert list(ground.tables[QUEUE].resident()) == ["other", "tidy"]
    assert (int(valkey.get(keys.stalls("tidy"))), valkey.ttl(keys.stalls("tidy"))) == (2, 24 * 3600)
    assert events() == []

    guard.stalled(JOB_ID, QUEUE)

    tidy = ground.tables[QUEUE].resident()["tidy"]
    assert (tidy.definition, tidy.torn.stalls, tidy.torn.at_ms) == ("", 3, AT_MS)
    assert ground.tables[OTHER].resident()["tidy"].definition
    assert events() == [{"event": "scheduler_torn_down", "schedulerId": "tidy", "stalls": 3}]
    assert not valkey.exists(keys.stalls("tidy"))
    # It fires no more, and no reconcile of the same file brings it back.
    assert ground.tick(by=10 * MINUTE) == ["03. 10:10"]
    assert ground.tables[QUEUE].reconcile([schedule()], now=START).torn == ("tidy",)


def test_each_schedule_has_its_own_count_which_a_quiet_day_forgets(valkey, guard):
    for job_id in (JOB_ID, "repeat:other:1", JOB_ID):
        guard.stalled(job_id, QUEUE)
        valkey.expire(keys.stalls("tidy"), 100)

    assert valkey.get(keys.stalls("tidy")) == b"2"
    guard.stalled(JOB_ID, QUEUE)
    valkey.set(keys.stalls("tidy"), 1, ex=100)
    guard.stalled(JOB_ID, QUEUE)
    assert valkey.ttl(keys.stalls("tidy")) == 24 * 3600


@pytest.mark.parametrize("job_id", ["local-1", "chain-1", "manual:tidy:5", "gh-repeat:tidy:1", ""])
def test_what_no_schedule_started_is_none_of_its_business(valkey, guard, events, job_id):
    guard.stalled(job_id, QUEUE)
    assert (everything(valkey), events()) == ({}, [])


@pytest.mark.parametrize("job_id", ["repeat:", "repeat::5", "repeat:tidy"])
def test_an_occurrence_of_nothing_is_told(valkey, guard, events, job_id):
    guard.stalled(job_id, QUEUE)
    assert everything(valkey) == {}
    assert events() == [{"event": "scheduler_stall_unparsed", "jobId": job_id}]


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        pytest.param(lambda client: client.delete(keys.definitions(QUEUE)), "not-installed", id="gone"),
        pytest.param(lambda client: client.set(keys.torn(QUEUE), "x"), "wrong-type", id="of another type"),
    ],
)
def test_what_cannot_be_taken_out_is_told_and_counts_as_out(valkey, events, spoil, error):
    Ground(valkey, schedule())
    spoil(valkey)

    StallGuard(valkey, most=0).stalled(JOB_ID, QUEUE)

    out = {"event": "scheduler_torn_down", "schedulerId": "tidy", "stalls": 1}
    failed = {"event": "scheduler_teardown_remove_failed", "schedulerId": "tidy", "error": error}
    assert events() == [failed, out]
    assert not valkey.exists(keys.stalls("tidy"))


def test_it_never_raises(valkey, tmp_path, events):
    valkey.hset(keys.stalls("tidy"), "a", "b")
    StallGuard(valkey, most=0).stalled(JOB_ID, QUEUE)
    StallGuard(state_client(f"unix://{tmp_path}/none"), most=0).stalled(JOB_ID, QUEUE)

    told = {"event": "scheduler_stall_guard_error", "jobId": JOB_ID}
    assert events() == [{**told, "error": "wrong-type"}, {**told, "error": "no-connection"}]


def test_a_job_that_was_moved_tears_down_the_table_that_it_came_from(valkey, events):
    ground = Ground(valkey, schedule(), queues=(QUEUE, OTHER))
    assert ground.tick(OTHER, by=3 * MINUTE) == ["03. 10:05"]
    job_id = occurrence_id("tidy", instant=ground.clock.now)

    StallGuard(valkey, most=0).stalled(job_id, "pi-jobs")

    assert ground.tables[OTHER].resident()["tidy"].torn
    assert ground.tables[QUEUE].resident()["tidy"].definition


def test_a_worker_that_dies_with_each_occurrence(valkey, guard, events):
    """From the tick to the teardown, as a worker wires it; only the worker's death is played."""
    ground = Ground(valkey, schedule())
    for number in range(4):
        assert len(ground.tick(by=5 * MINUTE)) == (number < 3)
        if number == 3:
            break
        dead = Host(valkey, name="dead", host_id="bbbb", boot_number=number, queue=QUEUE)
        dead.start()
        age_beat(valkey, dead, 100)
        (lost,) = Host(valkey, queue=QUEUE).sweeper.tick([QUEUE]).failed
        assert (lost.cause, lost.queue) == (Reason.STALLED, QUEUE)
        guard.stalled(lost.job_id, lost.queue)

    assert [one["event"] for one in events() if one["event"].startswith("scheduler")] == [
        "scheduler_torn_down"
    ]
