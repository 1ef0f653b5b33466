"""Jobs are woken when what they wait for is free: the oldest, some at a time, or those that are named."""

from __future__ import annotations

import math

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.retry import Retry

from dispatch import jobs
from dispatch.queue import keys
from dispatch.queue.sleepers import Sleeper, Sleepers
from dispatch.queue.waiters import Slice, Waiters, WaitReason
from tests.dispatch.queuekit import JOB, QUEUE, Host, assert_sound, hash_of, listed, now_ms

NAMES = keys.queue_keys(QUEUE)
OTHER = "pi-jobs@alpha"
QUEUES = (QUEUE, OTHER)
FAR = 4_000_000_000_000
SCOPED = (WaitReason.SCOPE_BUSY, "abcd")
PARKED = (WaitReason.CAP, None)


@pytest.fixture
def waiters(valkey):
    return Waiters(valkey)


def put_to_sleep(client, *job_ids, queue=QUEUE, until_ms=FAR, why=PARKED, first=None):
    """Enqueue, take and put off these jobs, the first of them queued at `first` and each 1 ms later."""
    host, (reason, scope) = Host(client, queue=queue), why
    for number, job_id in enumerate(job_ids):
        host.enqueue(job_id)
        claimed = host.claim()
        first = claimed.first_queued_ms if first is None else first
        client.hset(keys.job(claimed.raw_id), "firstQueued", first + number)
        host.steps.put_off(claimed, until_ms=until_ms, reason=reason, scope_hash=scope)


def sleep_at(client, scores):
    """Let one job sleep for each (queue, score), named after its place here."""
    for number, (queue, score) in enumerate(scores):
        put_to_sleep(client, f"local-{number}", queue=queue, first=score)


def awake(client):
    """Whose wake time has come, by job id."""
    return sorted(
        raw.decode()
        for queue in QUEUES
        for raw in client.zrangebyscore(keys.queue_keys(queue).scheduled, "-inf", FAR // 1000 - 1)
    )


def test_the_oldest_waiter_is_woken_and_it_alone(valkey, waiters):
    put_to_sleep(valkey, "local-1", "local-2", why=SCOPED)

    assert waiters.wake_oldest([QUEUE], *SCOPED) == ["local-1"]

    assert int(hash_of(valkey, "local-1")["until"]) < FAR
    assert Host(valkey).promoter.promote([QUEUE]) == 1
    assert listed(valkey) == ["local-1"]
    assert_sound(valkey, ["local-1", "local-2"])


def test_the_oldest_of_all_queues_is_woken(valkey, waiters):
    put_to_sleep(valkey, "local-1", queue=OTHER, why=SCOPED, first=1000)
    put_to_sleep(valkey, "local-2", why=SCOPED, first=2000)

    assert waiters.wake_oldest(QUEUES, *SCOPED) == ["local-1"]


@pytest.mark.parametrize(("ago", "first"), [(60, "local-2"), (1, "local-1")])
def test_where_nobody_promotes_nobody_is_woken(valkey, waiters, ago, first):
    put_to_sleep(valkey, "local-0", queue=OTHER, until_ms=now_ms(valkey) - ago * 1000, first=2000)
    put_to_sleep(valkey, "local-1", queue=OTHER, why=SCOPED, first=1000)
    put_to_sleep(valkey, "local-2", why=SCOPED, first=2000)

    assert waiters.wake_oldest(QUEUES, *SCOPED, due_seconds=3) == [first]


def test_one_that_is_due_already_is_not_made_later(valkey, waiters):
    put_to_sleep(valkey, "local-1", until_ms=1)

    assert waiters.wake_oldest([QUEUE], *PARKED) == ["local-1"]
    assert waiters.wake_these([(QUEUE, b"local-1")]) == 1

    assert valkey.zscore(NAMES.scheduled, "local-1") == 1


def test_waiters_of_another_scope_or_reason_sleep_on(valkey, waiters):
    put_to_sleep(valkey, "local-1", why=SCOPED)

    assert waiters.wake_oldest([QUEUE], WaitReason.SCOPE_BUSY, "ffff") == []
    assert waiters.wake_oldest([QUEUE], WaitReason.CAP, "abcd") == []
    assert waiters.wake_some([QUEUE], WaitReason.SCOPE_BUSY, after=-math.inf, most=9) == Slice(0, None)
    assert awake(valkey) == []


def test_a_retry_waits_among_the_retries(valkey, waiters):
    host = Host(valkey)
    host.enqueue("local-1")
    host.again(host.start())

    assert waiters.wake_oldest([QUEUE], WaitReason.RETRY) == ["local-1"]
    assert host.promoter.promote([QUEUE]) == 1
    assert_sound(valkey, ["local-1"])


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(lambda waiters: len(waiters.wake_oldest([QUEUE], *PARKED)), id="oldest"),
        pytest.param(
            lambda waiters: waiters.wake_some([QUEUE], "cap", after=-math.inf, most=1).woken, id="some"
        ),
    ],
)
def test_waiters_that_sleep_no_more_are_passed_over_and_leave(valkey, waiters, wake):
    # More than one page of them.
    valkey.zadd(keys.waiters(QUEUE, "cap"), {f"gone-{number}": number for number in range(7)})
    put_to_sleep(valkey, "local-1", "local-2")

    assert wake(waiters) == 1

    assert awake(valkey) == ["local-1"]
    assert valkey.zrange(keys.waiters(QUEUE, "cap"), 0, -1) == [b"local-1", b"local-2"]


def test_waking_makes_no_hash_of_a_job_that_is_gone(valkey, waiters):
    put_to_sleep(valkey, "local-1")
    valkey.delete(keys.job(b"local-1"))

    waiters.wake_oldest([QUEUE], *PARKED)
    waiters.wake_these([(QUEUE, b"local-1")])

    assert not valkey.exists(keys.job(b"local-1"))


ONE, TWO = QUEUE, OTHER


@pytest.mark.parametrize(
    ("sleeping", "after", "most", "woken", "last"),
    [
        pytest.param([], -math.inf, 2, [], None, id="nobody"),
        pytest.param([(ONE, 1)], -math.inf, 1, [0], None, id="all of them"),
        pytest.param([(ONE, 1), (ONE, 2)], -math.inf, 1, [0], 1.0, id="more are left"),
        pytest.param([(ONE, 1), (ONE, 2)], 1.0, 1, [1], None, id="goes on behind"),
        pytest.param([(ONE, 1), (ONE, 2)], 2.0, 1, [], None, id="behind the last"),
        pytest.param([(ONE, 1), (ONE, 3), (TWO, 2)], -math.inf, 2, [0, 2], 2.0, id="queues together"),
        pytest.param(
            [(ONE, 1), (ONE, 1), (TWO, 1), (TWO, 2)], -math.inf, 1, [0, 1, 2], 1.0, id="a score whole"
        ),
        pytest.param([(ONE, 1.5e12), (ONE, 1.5e12 + 1)], 1.5e12, 5, [1], None, id="neighbours of today"),
    ],
)
def test_a_slice_wakes_the_oldest_behind_a_score(valkey, waiters, sleeping, after, most, woken, last):
    sleep_at(valkey, [(queue, int(score)) for queue, score in sleeping])

    assert waiters.wake_some(QUEUES, "cap", after=after, most=most) == Slice(len(woken), last)

    assert awake(valkey) == [f"local-{number}" for number in woken]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sleeping=st.lists(st.tuples(st.sampled_from(QUEUES), st.integers(1, 6)), max_size=9),
    gone=st.sets(st.integers(0, 8)),
    most=st.integers(1, 4),
)
def test_slices_wake_each_once_and_the_older_ones_first(valkey, sleeping, gone, most):
    valkey.flushall()
    sleep_at(valkey, sleeping)
    for number in gone:
        valkey.zrem(NAMES.scheduled, f"local-{number}")
    left = [score for n, (queue, score) in enumerate(sleeping) if n not in gone or queue == OTHER]

    waiters, after, woken, total = Waiters(valkey), -math.inf, [], 0
    while after is not None:
        answer = waiters.wake_some(QUEUES, "cap", after=after, most=most)
        now_awake = len(awake(valkey))
        assert now_awake - total == answer.woken
        assert answer.after is None or (answer.woken >= most and answer.after > after)
        total, after = now_awake, answer.after
        woken.append(answer.woken)

    assert total == len(left)
    expected = []
    ordered = sorted(left)
    while ordered:
        border = ordered[min(most, len(ordered)) - 1]
        expected.append(sum(score <= border for score in ordered))
        ordered = [score for score in ordered if score > border]
    # A last look finds nobody when only waiters that sleep no more were left.
    assert [count for count in woken if count] == expected


def test_those_who_are_named_are_woken_in_their_queues_and_nobody_else(valkey, waiters):
    put_to_sleep(valkey, "local-1", "local-2")
    put_to_sleep(valkey, "local-3", queue=OTHER)
    Host(valkey).enqueue("local-4")

    named = [
        (QUEUE, b"local-1"),
        (QUEUE, b"local-3"),
        (OTHER, b"local-3"),
        (QUEUE, b"local-4"),
        (QUEUE, b"no"),
    ]

    assert waiters.wake_these(iter(named)) == 2
    assert waiters.wake_these([]) == 0
    assert awake(valkey) == ["local-1", "local-3"]
    assert int(hash_of(valkey, "local-3")["until"]) <= now_ms(valkey)
    assert_sound(valkey, ["local-1", "local-2", "local-4"])


def test_many_are_read_and_woken_in_steps(valkey, waiters):
    ids = [b"local-%04d" % number for number in range(1201)]
    with valkey.pipeline(transaction=False) as pipeline:
        for number, raw_id in enumerate(ids):
            pipeline.hset(keys.job(raw_id), mapping={"status": "scheduled", "until": FAR, "data": b"x"})
            pipeline.zadd(NAMES.scheduled, {raw_id: FAR // 1000})
            pipeline.zadd(keys.waiters(QUEUE, "cap"), {raw_id: number})
        pipeline.execute()

    found = list(Sleepers(valkey).read([QUEUE], "cap"))

    assert [one.raw_id for one in found] == ids
    assert waiters.wake_these((one.queue, one.raw_id) for one in found) == len(ids)
    assert len(awake(valkey)) == len(ids)


def test_sleepers_are_read_as_what_they_are(valkey):
    put_to_sleep(valkey, "local-1", until_ms=FAR)
    put_to_sleep(valkey, "local-2", queue=OTHER, until_ms=FAR + 1)
    put_to_sleep(valkey, "local-3", why=(WaitReason.PAUSE_WINDOW, None))

    assert list(Sleepers(valkey).read(QUEUES, "cap")) == [
        Sleeper(queue=QUEUE, raw_id=b"local-1", job=JOB, until_ms=FAR),
        Sleeper(queue=OTHER, raw_id=b"local-2", job=JOB, until_ms=FAR + 1),
    ]


@pytest.mark.parametrize(
    ("spoil", "kind", "until"),
    [
        pytest.param(lambda c, key: c.delete(key), None, None, id="hash gone"),
        pytest.param(lambda c, key: (c.delete(key), c.set(key, "x")), None, None, id="no hash"),
        pytest.param(lambda c, key: c.hset(key, "status", "queued"), None, None, id="awake"),
        pytest.param(
            lambda c, key: c.hset(key, "data", b"\xff"), jobs.Malformed, FAR, id="payload unreadable"
        ),
        pytest.param(lambda c, key: c.hdel(key, "data"), jobs.Malformed, FAR, id="no payload"),
        pytest.param(
            lambda c, key: c.hset(key, "until", "soon"), jobs.JobData, None, id="wake time unreadable"
        ),
    ],
)
def test_only_those_that_sleep_are_read(valkey, spoil, kind, until):
    put_to_sleep(valkey, "local-1", "local-2")
    spoil(valkey, keys.job(b"local-1"))

    found = {one.raw_id: one for one in Sleepers(valkey).read([QUEUE], "cap")}

    assert b"local-2" in found
    assert (b"local-1" in found) is bool(kind)
    if kind:
        assert isinstance(found[b"local-1"].job, kind)
        assert found[b"local-1"].until_ms == until


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda client: list(Sleepers(client).read([QUEUE], "cap")), id="read"),
        pytest.param(lambda client: Waiters(client).wake_some([QUEUE], "cap", after=0, most=1), id="some"),
        pytest.param(lambda client: Waiters(client).wake_these([(QUEUE, b"local-1")]), id="these"),
    ],
)
def test_a_server_that_is_gone_is_told(tmp_path, ask):
    with pytest.raises(redis.exceptions.ConnectionError):
        ask(redis.Redis(unix_socket_path=str(tmp_path / "none"), retry=Retry(NoBackoff(), 0)))
