"""Jobs that sleep come back on time, the oldest foremost, and are woken when what they wait for is free."""

from __future__ import annotations

import dataclasses
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.queue import keys
from dispatch.queue.promote import Promoter
from dispatch.queue.timings import Timings
from dispatch.queue.waiters import Waiters, WaitReason
from tests.dispatch.queuekit import QUEUE, Host, assert_sound, hash_of, listed, now_ms

NAMES = keys.queue_keys(QUEUE)
OTHER = "pi-jobs@alpha"


@pytest.fixture
def host(valkey):
    return Host(valkey)


@pytest.fixture
def waiters(valkey):
    return Waiters(valkey)


def put_to_sleep(host, *job_ids, until_ms=1, reason=WaitReason.SCOPE_BUSY, scope="abcd"):
    """Enqueue, take and put off these jobs, in this order."""
    for job_id in job_ids:
        host.enqueue(job_id)
        time.sleep(0.002)
        claimed = host.claim()
        assert claimed.job_id == job_id
        host.steps.put_off(claimed, until_ms=until_ms, reason=reason, scope_hash=scope)


def test_what_is_due_comes_back_before_what_was_never_taken(valkey, host):
    put_to_sleep(host, "local-1")
    host.enqueue("local-2")

    assert host.promoter.promote([QUEUE]) == 1

    assert listed(valkey) == ["local-1", "local-2"]
    assert hash_of(valkey, "local-1")["status"] == "queued"
    assert "until" not in hash_of(valkey, "local-1")
    assert_sound(valkey, ["local-1", "local-2"])


def test_what_is_not_due_sleeps_on(valkey, host):
    put_to_sleep(host, "local-1", until_ms=now_ms(valkey) + 60_000)

    assert host.promoter.promote([QUEUE]) == 0
    assert_sound(valkey, ["local-1"])


def test_a_job_is_never_back_before_its_time(valkey, host):
    until = now_ms(valkey) + 700
    put_to_sleep(host, "local-1", until_ms=until)

    while not host.promoter.promote([QUEUE]):
        assert now_ms(valkey) < until + 3000
        time.sleep(0.01)

    assert until <= now_ms(valkey) < until + 1500


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(6)), wakes=st.lists(st.integers(1, 3), min_size=6, max_size=6))
def test_due_jobs_stand_in_the_order_of_their_first_queueing_whatever_their_wake_times(valkey, order, wakes):
    valkey.flushall()
    host = Host(valkey)
    host.enqueue(*(f"local-{number}" for number in range(6)))
    claims = [host.claim() for _ in range(6)]
    for number in order:
        valkey.hset(keys.job(claims[number].raw_id), "firstQueued", 1000 + number)
        host.put_off(claims[number], wakes[number] * 1000)

    assert host.promoter.promote([QUEUE]) == 6
    assert listed(valkey) == [f"local-{number}" for number in range(6)]


def test_one_call_serves_all_queues(valkey, host):
    second = Host(valkey, queue=OTHER)
    put_to_sleep(host, "local-1")
    put_to_sleep(second, "local-2")

    assert host.promoter.promote([QUEUE, OTHER]) == 2

    assert (listed(valkey), listed(valkey, OTHER)) == (["local-1"], ["local-2"])


def test_no_queue_asks_nothing(host):
    assert host.promoter.promote([]) == 0


def test_two_promoters_bring_a_job_back_once(valkey, host):
    put_to_sleep(host, "local-1")

    assert [host.promoter.promote([QUEUE]), Promoter(valkey).promote([QUEUE])] == [1, 0]
    assert listed(valkey) == ["local-1"]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda client, key: client.delete(key), id="hash gone"),
        pytest.param(lambda client, key: (client.delete(key), client.set(key, "x")), id="no hash"),
        pytest.param(lambda client, key: client.hset(key, "status", "failed"), id="failed"),
        pytest.param(lambda client, key: client.hset(key, "status", "canceled"), id="canceled"),
    ],
)
def test_an_id_that_is_no_sleeping_job_is_not_revived(valkey, host, spoil):
    put_to_sleep(host, "local-1", "local-2")
    spoil(valkey, keys.job(b"local-1"))
    kept = valkey.type(keys.job(b"local-1"))

    assert host.promoter.promote([QUEUE]) == 1

    assert listed(valkey) == ["local-2"]
    assert valkey.zcard(NAMES.scheduled) == 0
    assert valkey.type(keys.job(b"local-1")) == kept


def test_a_first_queueing_that_makes_no_sense_sorts_foremost(valkey, host):
    put_to_sleep(host, "local-1", "local-2", "local-3")
    valkey.hset(keys.job(b"local-2"), "firstQueued", "nan")
    valkey.hset(keys.job(b"local-3"), "firstQueued", "x")

    assert host.promoter.promote([QUEUE]) == 3
    assert listed(valkey) == ["local-2", "local-3", "local-1"]


def test_more_than_one_step_takes_come_back_step_by_step(valkey, host):
    put_to_sleep(host, "local-1", "local-2", "local-3")
    promoter = Promoter(valkey, timings=dataclasses.replace(Timings(), promote_most=2))

    assert [promoter.promote([QUEUE]) for _ in range(3)] == [2, 1, 0]


def test_a_promoted_job_is_enqueued_anew_for_rq(valkey, host):
    host.enqueue("local-1")
    before = hash_of(valkey, "local-1")["enqueued_at"]
    host.put_off(host.claim(), 1)

    host.promoter.promote([QUEUE])

    assert hash_of(valkey, "local-1")["enqueued_at"] > before


def test_the_oldest_waiter_is_woken_and_it_alone(valkey, host, waiters):
    later = now_ms(valkey) + 60_000
    put_to_sleep(host, "local-1", "local-2", until_ms=later)

    woken = waiters.wake_oldest([QUEUE], WaitReason.SCOPE_BUSY, "abcd")

    assert woken == ["local-1"]
    assert int(hash_of(valkey, "local-1")["until"]) < later
    assert host.promoter.promote([QUEUE]) == 1
    assert listed(valkey) == ["local-1"]
    assert_sound(valkey, ["local-1", "local-2"])


def test_the_oldest_of_all_queues_is_woken(valkey, host, waiters):
    second = Host(valkey, queue=OTHER)
    later = now_ms(valkey) + 60_000
    put_to_sleep(second, "local-1", until_ms=later)
    put_to_sleep(host, "local-2", until_ms=later)

    assert waiters.wake_oldest([QUEUE, OTHER], WaitReason.SCOPE_BUSY, "abcd") == ["local-1"]


def test_one_that_is_due_already_is_not_made_later(valkey, host, waiters):
    put_to_sleep(host, "local-1", until_ms=1)

    waiters.wake_oldest([QUEUE], WaitReason.SCOPE_BUSY, "abcd")

    assert valkey.zscore(NAMES.scheduled, "local-1") == 1


def test_waiters_of_another_scope_or_reason_sleep_on(valkey, host, waiters):
    put_to_sleep(host, "local-1", until_ms=now_ms(valkey) + 60_000)

    assert waiters.wake_oldest([QUEUE], WaitReason.SCOPE_BUSY, "ffff") == []
    assert waiters.wake_oldest([QUEUE], WaitReason.CAP, "abcd") == []
    assert waiters.wake_all([QUEUE], WaitReason.SCOPE_BUSY) == []


def test_all_who_wait_for_a_reason_are_woken_together(valkey, host, waiters):
    later = now_ms(valkey) + 60_000
    put_to_sleep(host, "local-1", "local-2", until_ms=later, reason=WaitReason.CAP, scope=None)
    put_to_sleep(host, "local-3", until_ms=later)

    woken = waiters.wake_all([QUEUE], WaitReason.CAP)

    assert woken == ["local-1", "local-2"]
    assert host.promoter.promote([QUEUE]) == 2
    assert listed(valkey) == ["local-1", "local-2"]


def test_a_waiter_that_sleeps_no_more_is_passed_over_and_leaves(valkey, host, waiters):
    put_to_sleep(host, "local-1", "local-2", until_ms=now_ms(valkey) + 60_000)
    valkey.delete(keys.job(b"local-1"))
    valkey.zrem(NAMES.scheduled, "local-1")

    assert waiters.wake_oldest([QUEUE], WaitReason.SCOPE_BUSY, "abcd") == ["local-2"]
    assert valkey.zrange(keys.waiters(QUEUE, "scope-busy", "abcd"), 0, -1) == [b"local-2"]
    assert not valkey.exists(keys.job(b"local-1"))


def test_waking_makes_no_hash_of_a_job_that_is_gone(valkey, host, waiters):
    put_to_sleep(host, "local-1", until_ms=now_ms(valkey) + 60_000)
    valkey.delete(keys.job(b"local-1"))

    waiters.wake_oldest([QUEUE], WaitReason.SCOPE_BUSY, "abcd")

    assert not valkey.exists(keys.job(b"local-1"))


def test_a_retry_waits_among_the_retries(valkey, host, waiters):
    host.enqueue("local-1")
    host.again(host.start())

    assert waiters.wake_all([QUEUE], WaitReason.RETRY) == ["local-1"]
    assert host.promoter.promote([QUEUE]) == 1
    assert_sound(valkey, ["local-1"])
