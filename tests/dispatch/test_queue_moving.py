"""Jobs that nobody has in hand move to another queue as they are; none is lost or stands in two places."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
import redis

from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.dropping import Drop, drop
from dispatch.queue.moving import Moved, Waiting, move, read_waiting
from dispatch.queue.popper import Claimed
from dispatch.queue.waiters import Waiters
from tests.dispatch.queuekit import (
    JOB,
    QUEUE,
    Host,
    assert_sound,
    everything,
    hash_of,
    listed,
    now_ms,
    places,
)

OWN = "pi-jobs@alpha"
THIRD = "pi-jobs@gamma"
NAMES, OTHER = keys.queue_keys(OWN), keys.queue_keys(QUEUE)


@pytest.fixture
def host(valkey):
    return Host(valkey, queue=OWN)


def move_all(client, *job_ids, target=QUEUE):
    return list(move(client, [rq_id(one).encode() for one in job_ids], source=OWN, target=target).values())


def just_popped(host):
    host.client.blmove(NAMES.jobs, NAMES.taken(host.owner.boot), 1)


def listed_as_well(host):
    host.claim()
    host.client.rpush(NAMES.jobs, "local-1")


def ended(host):
    host.end(host.start())


def elsewhere(host):
    move_all(host.client, "local-1", target=THIRD)


def no_hash(host):
    host.client.delete("rq:job:local-1")
    host.client.set("rq:job:local-1", "x")


@pytest.mark.parametrize(
    ("spoil", "answer"),
    [
        pytest.param(Host.claim, Moved.IN_HAND, id="in hand"),
        pytest.param(just_popped, Moved.IN_HAND, id="popped and not yet claimed"),
        pytest.param(listed_as_well, Moved.IN_HAND, id="in hand and in line once more"),
        pytest.param(Host.start, Moved.STARTED, id="started"),
        pytest.param(ended, Moved.OVER, id="finished"),
        pytest.param(elsewhere, Moved.ELSEWHERE, id="on a third queue"),
        pytest.param(lambda host: drop(host.client, "local-1"), Moved.ABSENT, id="dropped"),
        pytest.param(no_hash, Moved.ABSENT, id="no hash"),
        pytest.param(
            lambda host: host.client.hset("rq:job:local-1", "status", "scheduled"),
            Moved.ABSENT,
            id="asleep nowhere",
        ),
    ],
)
def test_what_does_not_wait_here_is_left_alone(valkey, host, spoil, answer):
    host.enqueue("local-1")
    spoil(host)
    before = everything(valkey)

    assert move_all(valkey, "local-1") == [answer]
    assert everything(valkey) == before


def sleeping(host):
    host.put_off(host.claim(), 4_000_000_000_000)


def waiting_for_a_retry(host):
    host.again(host.start(), delay_ms=3_600_000)


@pytest.mark.parametrize(
    "state", [lambda _: None, sleeping, waiting_for_a_retry], ids=["line", "sleep", "retry"]
)
def test_a_job_moves_as_it_is_and_a_second_try_changes_nothing(valkey, host, state):
    host.enqueue("local-1")
    state(host)
    was, stood = hash_of(valkey, "local-1"), standing(valkey, NAMES)

    assert move_all(valkey, "local-1") == [Moved.MOVED]

    assert hash_of(valkey, "local-1") == {**was, "origin": QUEUE}
    assert standing(valkey, OTHER) == stood
    assert places(valkey, NAMES)[rq_id("local-1").encode()] == []
    assert_sound(valkey, ["local-1"], QUEUE)
    assert valkey.sismember(keys.QUEUES, OTHER.jobs)
    assert valkey.sismember("queues:known", QUEUE)
    before = everything(valkey)
    assert move_all(valkey, "local-1") == [Moved.MOVED]
    assert everything(valkey) == before


def standing(client, names):
    """What the queue's keys hold, its name taken out of theirs."""
    return {
        key.replace(names.name, "<queue>"): value
        for key, value in everything(client).items()
        if key in {names.jobs, names.scheduled} or key.startswith(f"waiters:{names.name}:")
    }


def test_the_one_that_waits_longest_for_a_scope_is_woken_where_it_went(valkey, host):
    host.enqueue("local-1", "local-2")
    for _ in range(2):
        sleeping(host)
    move_all(valkey, "local-2", "local-1")
    waiters = Waiters(valkey)

    assert waiters.wake_oldest([OWN], "scope-busy", "abcd") == []
    assert waiters.wake_oldest([OWN, QUEUE], "scope-busy", "abcd") == ["local-1"]
    assert host.promoter.promote([QUEUE]) == 1
    assert_sound(valkey, ["local-1", "local-2"], QUEUE)


def test_what_was_taken_before_goes_before_what_never_was_and_the_order_is_kept(valkey, host):
    there = Host(valkey)
    for one, number in ((there, 1), (host, 5)):
        one.enqueue(*(f"local-{number + offset}" for offset in range(4)))
        first, second = one.claim(), one.claim()
        one.steps.give_back(second)
        one.steps.give_back(first)

    move_all(valkey, *listed(valkey, OWN))

    assert [one[-1] for one in listed(valkey)] == ["1", "2", "5", "6", "3", "4", "7", "8"]
    assert_sound(valkey, listed(valkey))


def test_a_thousand_jobs_move_in_two_steps_and_keep_their_order(valkey, host):
    raw_ids = [b"local-%d" % number for number in range(1000)]
    for raw_id in raw_ids:
        valkey.hset(keys.job(raw_id), mapping={"status": "queued", "origin": OWN})
    valkey.rpush(NAMES.jobs, *raw_ids)
    valkey.config_resetstat()

    answers = move(valkey, raw_ids, source=OWN, target=QUEUE)

    assert set(answers.values()) == {Moved.MOVED}
    calls = valkey.info("commandstats")
    assert sum(calls.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "script")) <= 4
    assert valkey.lrange(OTHER.jobs, 0, -1) == raw_ids
    assert not valkey.exists(NAMES.jobs)


@pytest.mark.parametrize("key", [OTHER.jobs, OTHER.scheduled, keys.QUEUES, f"waiters:{QUEUE}:retry"])
def test_a_key_of_a_wrong_type_on_the_way_loses_nothing(valkey, host, key):
    host.enqueue("local-1", "local-2")
    host.again(host.start(), delay_ms=3_600_000)
    valkey.delete(key)
    valkey.set(key, "x")

    with pytest.raises(redis.exceptions.ResponseError):
        move_all(valkey, "local-2", "local-1")

    assert_sound(valkey, ["local-1", "local-2"], OWN)


@pytest.mark.parametrize("state", [lambda _: None, sleeping], ids=["line", "sleep"])
def test_a_full_server_moves_a_job_whole_or_not_at_all(valkey, host, state):
    host.enqueue("local-1")
    state(host)
    valkey.config_set("maxmemory", 1)
    try:
        with suppress(redis.exceptions.OutOfMemoryError):
            move_all(valkey, "local-1")
    finally:
        valkey.config_set("maxmemory", 0)

    assert_sound(valkey, ["local-1"], hash_of(valkey, "local-1")["origin"])


@pytest.mark.parametrize("state", [lambda _: None, sleeping], ids=["line", "sleep"])
def test_a_job_that_moves_under_the_hand_of_its_drop_is_dropped_where_it_went(
    valkey, host, valkey_url, state
):
    host.enqueue("local-1")
    state(host)

    class Client(redis.Redis):
        def execute_command(self, *words, **options):
            if words[0] == "EVALSHA" and NAMES.jobs in words:
                move_all(valkey, "local-1")
            return super().execute_command(*words, **options)

    client = Client(connection_pool=redis.ConnectionPool.from_url(valkey_url))

    assert drop(client, "local-1") is Drop.DROPPED
    client.connection_pool.disconnect()
    assert "local-1" not in str(everything(valkey))


def test_a_queue_is_not_moved_to_itself(valkey):
    with pytest.raises(ValueError, match="to itself"):
        move(valkey, [b"local-1"], source=QUEUE, target=QUEUE)


def test_who_waits_is_read_in_line_then_asleep_without_what_is_none_of_it(valkey, host):
    host.enqueue("local-1", "local-2", "local-3", "local-4", "local-5")
    sleeping(host)
    host.start()
    no_hash_of = keys.job(b"local-4")
    valkey.delete(no_hash_of)
    valkey.set(no_hash_of, "x")
    valkey.hset(keys.job(b"local-5"), "origin", THIRD)
    valkey.rpush(NAMES.jobs, "local-3", "gone")

    assert read_waiting(valkey, OWN) == tuple(
        Waiting(raw_id=job_id.encode(), job_id=job_id, job=JOB) for job_id in ("local-3", "local-1")
    )


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        (None, set()),
        ("", set()),
        ("s:a,w:green", {"s:a", "w:green"}),
        ("s:a, w:b,x:c,,w:d e", {"s:a"}),
        (b"\xff\0,w:b", {"w:b"}),
        ("w:" + "x" * 10_000, {"w:" + "x" * 4094}),
    ],
)
def test_what_a_job_was_asked_to_have_is_read_whoever_wrote_it(valkey, host, text, needs):
    host.enqueue("local-1")
    if text is not None:
        valkey.hset(keys.job(b"local-1"), "needs", text)

    [one] = read_waiting(valkey, OWN)

    assert one.needs == needs


def test_jobs_that_are_taken_while_they_move_are_taken_once(valkey, host, valkey_url):
    ids = [f"local-{number}" for number in range(300)]
    host.enqueue(*ids)
    taken, over = Counter(), threading.Event()

    def take(queue, name, host_id):
        worker = Host(redis.Redis.from_url(valkey_url), queue=queue, name=name, host_id=host_id)
        while not over.is_set():
            popped = worker.popper.wait(0.05)
            if isinstance(popped, Claimed):
                assert worker.begin(popped) == "done"
                taken[popped.job_id] += 1

    workers = [
        threading.Thread(target=take, args=(OWN, "alpha", "aaaa")),
        threading.Thread(target=take, args=(QUEUE, "beta", "bbbb")),
    ]
    for worker in workers:
        worker.start()
    moved = 0
    deadline = now_ms(valkey) + 20_000
    while taken.total() < len(ids) and now_ms(valkey) < deadline:
        some = [one.raw_id for one in read_waiting(valkey, OWN)][-20:]
        moved += list(move(valkey, some, source=OWN, target=QUEUE).values()).count(Moved.MOVED)
        time.sleep(0.002)
    over.set()
    for worker in workers:
        worker.join()

    assert taken == Counter(ids)
    assert 0 < moved < len(ids)
    assert {hash_of(valkey, one)["origin"] for one in ids} == {OWN, QUEUE}
