"""The figures of `status`, where one job stands, and taking one out before it starts."""

from __future__ import annotations

import pytest

from dispatch.queue import keys
from dispatch.queue.counts import Counts, count
from dispatch.queue.dropping import Drop, drop
from dispatch.queue.states import Standing, State, look
from dispatch.queue.transitions import Step
from hosts import switches
from runs.outcome import Outcome
from tests.dispatch.queuekit import JOB, QUEUE, Host, everything, listed, records

OTHER = "pi-jobs@alpha"


@pytest.fixture
def host(valkey):
    return Host(valkey)


def one_of_each(host):
    """Three wait, two are in hand, one runs, one sleeps, one finished, one failed."""
    host.enqueue(*(f"local-{number}" for number in range(9)))
    host.end(host.start())
    host.end(host.claim(), Outcome.FAILED)
    host.put_off(host.claim(), 10**13)
    host.start()
    host.claim()
    host.claim()


def test_each_job_counts_where_it_stands(valkey, host):
    one_of_each(host)

    assert count(valkey, [QUEUE, OTHER]) == {
        QUEUE: Counts(waiting=3, active=3, paused=0, delayed=1, failed=1),
        OTHER: Counts(),
    }


@pytest.mark.parametrize("scope", ["*", QUEUE])
def test_the_list_of_a_paused_queue_counts_as_paused(valkey, host, scope):
    one_of_each(host)
    switches.pause(valkey, [scope], by="test", reason="")

    counted = count(valkey, [QUEUE])[QUEUE]

    assert counted == Counts(waiting=0, active=3, paused=3, delayed=1, failed=1)


def test_a_pause_of_another_queue_or_one_that_lapsed_changes_no_figure(valkey, host):
    host.enqueue("local-1")
    switches.pause(valkey, [OTHER], by="test", reason="")
    valkey.hset(f"pause:{QUEUE}", "until", "1")

    assert count(valkey, [QUEUE])[QUEUE] == Counts(waiting=1)


def test_a_failed_job_whose_time_is_up_counts_no_more(valkey, host):
    valkey.zadd(keys.queue_keys(QUEUE).failed, {"local-1": 1})

    assert count(valkey, [QUEUE])[QUEUE] == Counts()


def test_queues_add_up(valkey, host):
    one_of_each(host)
    Host(valkey, queue=OTHER).enqueue("local-a")

    total = sum(count(valkey, [QUEUE, OTHER]).values(), Counts())

    assert total == Counts(waiting=4, active=3, delayed=1, failed=1)


def test_no_queue_counts_nothing(valkey):
    assert count(valkey, []) == {}


def test_a_job_that_nobody_has_does_not_stand_anywhere(valkey):
    assert look(valkey, "local-1") is None


def test_a_sleeping_job_says_why_and_until_when(valkey, host):
    host.enqueue("local-1")
    claimed = host.claim()
    host.put_off(claimed, 5000)

    standing = look(valkey, "local-1")

    assert (standing.state, standing.queue, standing.reason) == (State.SCHEDULED, QUEUE, "scope-busy")
    assert standing.until_ms == 5000
    assert claimed.now_ms <= standing.since_ms < claimed.now_ms + 5000


def test_a_job_in_hand_says_who_has_it(valkey, host):
    host.enqueue("local-1")
    host.claim()

    assert look(valkey, "local-1") == Standing(state=State.IN_HAND, queue=QUEUE, host="alpha", attempts=2)


@pytest.mark.parametrize(
    ("state", "waiting", "over"),
    [
        (State.QUEUED, True, False),
        (State.IN_HAND, True, False),
        (State.SCHEDULED, True, False),
        (State.STARTED, False, False),
        (State.FINISHED, False, True),
        (State.FAILED, False, True),
        (State.OTHER, False, False),
    ],
)
def test_a_state_waits_runs_or_is_over(state, waiting, over):
    assert (state.is_waiting, state.is_over) == (waiting, over)


def test_a_word_of_rqs_that_we_never_write_is_other(valkey, host):
    host.enqueue("local-1")
    valkey.hset(keys.job(b"local-1"), "status", "deferred")

    assert look(valkey, "local-1").state is State.OTHER


def waiting(host):
    return None


def in_hand(host):
    return host.claim()


def sleeping(host):
    host.put_off(host.claim())


@pytest.mark.parametrize("bring", [waiting, in_hand, sleeping])
def test_a_job_that_has_not_started_can_be_dropped_without_a_trace(valkey, host, bring):
    host.producer.enqueue(QUEUE, "repeat:x:1", JOB, scope_hash="abcd")
    claimed = bring(host)

    assert drop(valkey, "repeat:x:1") is Drop.DROPPED

    assert [name for name, value in everything(valkey).items() if "repeat_3ax" in f"{name} {value}"] == []
    assert records(valkey) == []
    if claimed:
        assert host.begin(claimed) is Step.LOST
        assert host.refuse(claimed) is Step.LOST
    assert drop(valkey, "repeat:x:1") is Drop.ABSENT


def test_a_dropped_id_can_be_enqueued_again(valkey, host):
    host.enqueue("local-1")
    drop(valkey, "local-1")
    host.enqueue("local-1")

    assert listed(valkey) == ["local-1"]


def test_an_id_dropped_between_move_and_claim_is_not_claimed(valkey):
    host = Host(valkey, delays=lambda point: drop(valkey, "local-1") if point == "after move" else None)
    host.enqueue("local-1")

    popped = host.popper.wait(1)

    assert type(popped).__name__ == "Dropped"
    assert everything(valkey).get(f"{QUEUE}:taken:{host.owner.boot}") is None


@pytest.mark.parametrize(
    ("bring", "answer"),
    [
        pytest.param(lambda host: host.start(), Drop.STARTED, id="started"),
        pytest.param(lambda host: host.end(host.start()), Drop.OVER, id="finished"),
        pytest.param(lambda host: host.end(host.claim(), Outcome.FAILED), Drop.OVER, id="failed"),
    ],
)
def test_a_job_that_runs_or_has_ended_is_not_dropped(valkey, host, bring, answer):
    host.enqueue("local-1")
    bring(host)
    before = everything(valkey)

    assert drop(valkey, "local-1") is answer
    assert everything(valkey) == before


def test_a_hash_that_is_no_job_is_left_alone(valkey, host):
    valkey.hset(keys.job(b"local-1"), mapping={"origin": QUEUE})

    assert drop(valkey, "local-1") is Drop.ABSENT
    assert valkey.exists(keys.job(b"local-1"))


def test_a_job_that_is_not_there_is_absent(valkey):
    assert drop(valkey, "local-1") is Drop.ABSENT
    assert everything(valkey) == {}
