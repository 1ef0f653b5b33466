"""Jobs that sleep come back on time, before what was never taken, in the order of their first queueing."""

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


def place_in(client, *lines):
    """Let these jobs stand in line in this order: (name, first queued, 'left' | 'put back' | 'never')."""
    for name, first, past in lines:
        fields = {"status": "queued", "firstQueued": first, "putBacks": int(past == "put back")}
        client.hset(keys.job(name.encode()), mapping=fields | ({"left": "b/1"} if past == "left" else {}))
        client.rpush(NAMES.jobs, name)


def let_sleep(client, *sleepers):
    """Let these jobs sleep: (name, first queued, wake time in s)."""
    for name, first, wakes in sleepers:
        fields = {"status": "scheduled", "firstQueued": first, "left": "b/1", "reason": "cap"}
        client.hset(keys.job(name.encode()), mapping=fields)
        client.zadd(NAMES.scheduled, {name: wakes})
        client.zadd(keys.waiters(QUEUE, "cap"), {name: first if isinstance(first, int) else 0})


@pytest.mark.parametrize(
    ("in_line", "sleeping", "expected"),
    [
        pytest.param([], [("b", 2, 1), ("a", 1, 2)], "ab", id="empty line"),
        pytest.param([("n", 0, "never")], [("a", 9, 1)], "an", id="before what was never taken"),
        pytest.param([("a", 1, "left")], [("b", 2, 1)], "ab", id="behind an older one that left a hand"),
        pytest.param([("b", 2, "left")], [("a", 1, 1)], "ab", id="before a younger one"),
        pytest.param([("a", 1, "put back")], [("b", 2, 1)], "ab", id="behind an older one put back"),
        pytest.param(
            [("a", 1, "left"), ("c", 3, "put back"), ("n", 0, "never"), ("d", 2, "left")],
            [("b", 2, 1), ("e", 5, 1)],
            "abcend",
            id="no farther than the first never taken",
        ),
        pytest.param([("a", 1, "left"), ("b", 1, "left")], [("0", 1, 1)], "ab0", id="the same instant"),
        pytest.param(
            [("c", 3, "left"), ("b", 2, "left")], [("a", 1, 1)], "abc", id="given back the wrong way round"
        ),
        pytest.param([("a", "x", "left"), ("c", 3, "left")], [("b", 2, 1)], "abc", id="no instant"),
    ],
)
def test_what_comes_back_stands_among_what_was_taken_before(valkey, host, in_line, sleeping, expected):
    place_in(valkey, *in_line)
    let_sleep(valkey, *sleeping)

    host.promoter.promote([QUEUE])

    assert "".join(listed(valkey)) == expected


@pytest.mark.parametrize("kind", ["gone", "no hash", "over"])
def test_what_stands_in_line_for_nothing_is_no_border(valkey, host, kind):
    place_in(valkey, ("x", 0, "never"), ("a", 1, "left"))
    valkey.delete(keys.job(b"x"))
    if kind == "no hash":
        valkey.set(keys.job(b"x"), "x")
    elif kind == "over":
        valkey.hset(keys.job(b"x"), "status", "finished")
    let_sleep(valkey, ("b", 2, 1))

    host.promoter.promote([QUEUE])

    assert listed(valkey) == ["x", "a", "b"]


def test_batches_come_together_in_the_order_of_their_first_queueing(valkey):
    """The batches are cut by wake time; the oldest wakes last."""
    let_sleep(valkey, *((f"{n}", n, 10 - n) for n in range(9)))
    place_in(valkey, ("new", 99, "never"))
    promoter = Promoter(valkey, timings=dataclasses.replace(Timings(), promote_most=2))

    assert [promoter.promote([QUEUE]) for _ in range(6)] == [2, 2, 2, 2, 1, 0]

    assert listed(valkey) == [*map(str, range(9)), "new"]


def test_more_than_is_looked_at_loses_nothing_and_stays_before_what_was_never_taken(valkey):
    place_in(valkey, *((f"f{n}", n, "left") for n in range(8)), ("new", 0, "never"))
    let_sleep(valkey, ("late", 99, 1))

    Promoter(valkey, timings=dataclasses.replace(Timings(), promote_most=1)).promote([QUEUE])

    # Five are looked at.
    assert listed(valkey) == ["f0", "f1", "f2", "f3", "f4", "late", "f5", "f6", "f7", "new"]


def test_a_long_front_is_put_in_order_in_one_step(valkey, host):
    place_in(valkey, *((f"f{n}", 2 * n, "left") for n in range(1200)), ("new", 0, "never"))
    let_sleep(valkey, *((f"d{n}", 2 * n + 1, 1) for n in range(900)))

    assert host.promoter.promote([QUEUE]) == 900

    order = sorted([(2 * n, f"f{n}") for n in range(1200)] + [(2 * n + 1, f"d{n}") for n in range(900)])
    assert listed(valkey) == [*(name for _, name in order), "new"]


MOVES = ("enqueue", "give back", "put off", "retry", "die in hand", "wake", "promote")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 2)), max_size=30))
def test_after_any_steps_a_promotion_leaves_the_front_in_order(valkey, moves):
    valkey.flushall()
    play = Play(valkey)
    for move, number in moves:
        play.step(move, number)
        play.never_taken_come_last()

    Waiters(valkey).wake_these([(QUEUE, raw) for raw in valkey.zrange(NAMES.scheduled, 0, -1)])
    while play.promote():
        pass

    play.never_taken_come_last()
    assert_sound(valkey, play.names)
    assert not valkey.zcard(NAMES.scheduled)


class Play:
    """One host that takes and returns jobs; knows who was taken, and when each was first queued."""

    def __init__(self, client):
        self.client = client
        self.host = Host(client)
        self.promoter = Promoter(client, timings=dataclasses.replace(Timings(), promote_most=3))
        self.names = []
        self.taken = set()

    def step(self, move, number):
        match move:
            case "enqueue":
                self.enqueue()
            case "promote":
                self.promote()
            case "wake":
                asleep = self.client.zrange(NAMES.scheduled, 0, -1)
                Waiters(self.client).wake_these([(QUEUE, raw) for raw in asleep[number : number + 1]])
            case _ if listed(self.client):
                self.take_and_return(move, number)

    def enqueue(self):
        name = f"local-{len(self.names)}"
        self.host.enqueue(name)
        self.client.hset(keys.job(name.encode()), "firstQueued", 1000 + len(self.names))
        self.names.append(name)

    def take_and_return(self, move, number):
        """Take some jobs at once and return the last taken first: what is given back keeps its order."""
        claims = [self.host.claim() for _ in listed(self.client)[: number + 1]]
        self.taken |= {one.job_id for one in claims}
        for claimed in reversed(claims):
            match move:
                case "give back":
                    self.host.steps.give_back(claimed)
                case "put off":
                    self.host.put_off(claimed, now_ms(self.client) + 60_000)
                case "retry":
                    self.host.again(claimed)
        if move == "die in hand":
            self.host = Host(self.client, boot_number=self.host.boot_number + 1)
            self.host.sweeper.at_boot([QUEUE])

    def promote(self):
        promoted = self.promoter.promote([QUEUE])
        if promoted:
            front = [name for name in listed(self.client) if name in self.taken]
            assert front[:15] == sorted(front[:15], key=self.names.index)
        return promoted

    def never_taken_come_last(self):
        taken = [name in self.taken for name in listed(self.client)]
        assert taken == sorted(taken, reverse=True)
