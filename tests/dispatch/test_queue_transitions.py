"""What a worker does with a job in hand: from which states, once, never over somebody else's word."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest

from dispatch.queue import keys
from dispatch.queue.containers import begun
from dispatch.queue.sweep import Sweeper
from dispatch.queue.transitions import Slot, Step
from hosts import switches
from runs.outcome import Outcome
from tests.dispatch.queuekit import (
    MOVES,
    QUEUE,
    Host,
    assert_sound,
    everything,
    hash_of,
    listed,
    now_ms,
    records,
    taken,
)

# What each transition leads to from each state that it may start from.
ALLOWED = {
    ("in hand", "give back"): "queued",
    ("in hand", "put off"): "scheduled",
    ("in hand", "refuse"): "finished",
    ("in hand", "begin"): "started",
    ("in hand", "end failed"): "failed",
    ("in hand", "again"): "scheduled",
    ("started", "end"): "finished",
    ("started", "end failed"): "failed",
    ("started", "again"): "scheduled",
    # A repeat of its own begin.
    ("started", "begin"): "started",
}


def in_hand(host: Host):
    return host.claim()


def started(host: Host):
    return host.start()


def handed_on(host: Host, to: str):
    """The claim of a host that lost the job, which now stands in this state in another's hand."""
    claimed = host.claim()
    other = Host(host.client, name="beta", host_id="bbbb", timings=host.timings)
    other.sweeper.tick([QUEUE])
    theirs = other.claim()
    assert theirs.job_id == claimed.job_id
    if to == "started":
        other.begin(theirs)
    elif to != "in hand":
        MOVES[to](other, theirs)
    return claimed


def stalled(host: Host):
    claimed = host.start()
    Host(host.client, name="beta", host_id="bbbb").sweeper.tick([QUEUE])
    return claimed


def deleted(host: Host):
    claimed = host.claim()
    host.client.delete(keys.job(claimed.raw_id))
    return claimed


def overwritten(host: Host):
    claimed = host.claim()
    host.client.delete(keys.job(claimed.raw_id))
    host.client.set(keys.job(claimed.raw_id), "no hash")
    return claimed


STATES = {
    "in hand": in_hand,
    "started": started,
    "in another's hand": lambda host: handed_on(host, "in hand"),
    "started by another": lambda host: handed_on(host, "started"),
    "given back by another": lambda host: handed_on(host, "give back"),
    "put off by another": lambda host: handed_on(host, "put off"),
    "refused by another": lambda host: handed_on(host, "refuse"),
    "failed by another": lambda host: handed_on(host, "end failed"),
    "stalled": stalled,
    "deleted": deleted,
    "overwritten": overwritten,
}


@pytest.fixture
def host(valkey):
    host = Host(valkey)
    host.enqueue("local-1")
    # A peer may judge at once: its beat is long ago.
    valkey.zadd(keys.queue_keys(QUEUE).takers, {host.owner.boot: 0})
    return host


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("state", STATES)
def test_a_transition_starts_from_its_own_states_only(valkey, host, state, move):
    claimed = STATES[state](host)
    before = everything(valkey)

    answer = MOVES[move](host, claimed)

    target = ALLOWED.get((state, move))
    assert answer is (Step.DONE if target else Step.LOST)
    if target:
        assert hash_of(valkey, "local-1")["status"] == target
        assert_sound(valkey, ["local-1"])
    else:
        assert everything(valkey) == before


@pytest.mark.parametrize(("state", "move"), ALLOWED, ids=" ".join)
def test_a_repeat_of_a_transition_that_landed_answers_done_and_changes_nothing(valkey, host, state, move):
    claimed = STATES[state](host)
    MOVES[move](host, claimed)
    before = everything(valkey)

    answer = MOVES[move](host, claimed)

    assert answer is Step.DONE
    assert everything(valkey) == before


@pytest.mark.parametrize(
    ("state", "move", "pushed"),
    [
        pytest.param("in hand", "give back", [], id="give back"),
        pytest.param("in hand", "put off", [], id="put off"),
        pytest.param("in hand", "begin", [], id="begin"),
        pytest.param("in hand", "refuse", ["refuse"], id="refuse"),
        pytest.param("started", "end", ["end"], id="end"),
        pytest.param("in hand", "end failed", ["end"], id="end in hand"),
        pytest.param("started", "again", ["again"], id="again"),
    ],
)
def test_an_ending_pushes_its_record_in_the_same_step(valkey, host, state, move, pushed):
    MOVES[move](host, STATES[state](host))

    assert [one["what"] for one in records(valkey)] == pushed


def test_given_back_goes_before_what_was_never_taken(valkey, host):
    host.enqueue("local-2")

    host.steps.give_back(host.claim())

    assert listed(valkey) == ["local-1", "local-2"]
    assert "taker" not in hash_of(valkey, "local-1")
    assert hash_of(valkey, "local-1")["putBacks"] == "0"


@pytest.mark.parametrize("late_ms", [1, 500, 999, 1000])
def test_a_wake_time_is_never_early_and_less_than_a_second_late(valkey, host, late_ms):
    claimed = host.claim()
    until = (claimed.now_ms // 1000 + 7) * 1000 + late_ms

    host.put_off(claimed, until)

    wakes = valkey.zscore(keys.queue_keys(QUEUE).scheduled, claimed.raw_id) * 1000
    assert until <= wakes < until + 1000
    assert hash_of(valkey, "local-1")["until"] == str(until)


def test_put_off_for_the_same_reason_keeps_since_when(valkey, host):
    claimed = host.claim()
    host.put_off(claimed, 1)
    since = hash_of(valkey, "local-1")["since"]
    host.promoter.promote([QUEUE])
    time.sleep(0.002)

    second = host.claim()
    host.put_off(second, 1)

    assert (second.reason, str(second.since_ms)) == ("scope-busy", since)
    assert hash_of(valkey, "local-1")["since"] == since


def test_put_off_for_another_reason_waits_since_now(valkey, host):
    host.put_off(host.claim(), 1)
    since = int(hash_of(valkey, "local-1")["since"])
    host.promoter.promote([QUEUE])
    time.sleep(0.002)

    host.steps.put_off(host.claim(), until_ms=1, reason="cap")

    assert int(hash_of(valkey, "local-1")["since"]) > since
    assert_sound(valkey, ["local-1"])


@pytest.mark.parametrize("move", ["put off", "again"])
def test_a_wait_for_no_scope_leaves_the_jobs_own_scope_and_knows_the_queue(valkey, host, move):
    valkey.hset(keys.job(b"local-1"), "scope", "abcd")
    valkey.delete("rq:queues")
    claimed = host.claim()

    if move == "again":
        host.again(claimed)
    else:
        host.steps.put_off(claimed, until_ms=1, reason="cap")

    assert hash_of(valkey, "local-1")["scope"] == "abcd"
    assert valkey.smembers("rq:queues") == {b"rq:queue:pi-jobs"}
    assert_sound(valkey, ["local-1"])


def test_a_retry_spends_an_attempt_and_remembers_it(valkey, host):
    host.again(host.start(), delay_ms=0)
    host.promoter.promote([QUEUE])
    time.sleep(1.01)
    host.promoter.promote([QUEUE])

    second = host.claim()

    assert (second.attempt, second.attempts) == (1, 2)
    assert second.attempt_log == ({"outcome": "failed", "reason": None, "attempt": 0},)
    assert json.loads(hash_of(valkey, "local-1")["attemptLog"]) == [
        {"outcome": "failed", "reason": None, "attempt": 0}
    ]


def test_the_back_off_counts_from_valkeys_now(valkey, host):
    before = now_ms(valkey)

    host.again(host.start(), delay_ms=60_000)

    wakes = valkey.zscore(keys.queue_keys(QUEUE).scheduled, "local-1") * 1000
    assert before + 60_000 <= wakes <= now_ms(valkey) + 61_000


def test_a_job_that_begins_waits_for_nothing_and_lives_until_its_end(valkey, host):
    host.put_off(host.claim(), 1)
    host.promoter.promote([QUEUE])
    valkey.expire(keys.job(b"local-1"), 1000)

    host.start()

    assert not {"reason", "since", "until"} & set(hash_of(valkey, "local-1"))
    assert valkey.ttl(keys.job(b"local-1")) == -1


def test_begin_names_the_container_for_stop_and_no_ending_takes_it_away(valkey, host):
    claimed = host.claim()
    host.steps.begin(claimed, container="pi-job-local-1", deadline_ms=123)
    host.end(claimed)

    [one] = begun(valkey, "aaaa")

    assert (one.name, one.job_id, one.attempt, one.token, one.deadline_ms) == (
        *("pi-job-local-1", "local-1", 0),
        *(claimed.token, 123),
    )


@pytest.mark.parametrize(
    "switch",
    [
        pytest.param(lambda client: pause(client, "*"), id="fleet"),
        pytest.param(lambda client: pause(client, QUEUE), id="queue"),
        pytest.param(lambda client: pause(client, QUEUE, timedelta(hours=1)), id="with an end"),
        pytest.param(lambda client: client.hset("drain:alpha", "until", ""), id="drain"),
        pytest.param(lambda client: client.hset("pause:*", "until", "soon"), id="damaged"),
        pytest.param(lambda client: client.set("pause:*", "on"), id="of a wrong type"),
        pytest.param(lambda client: client.hset("pause:*", "until", "nan"), id="no number"),
    ],
)
def test_under_a_switch_nothing_becomes_started(valkey, host, switch):
    claimed = host.claim()
    switch(valkey)
    before = everything(valkey)

    answer = host.begin(claimed)

    assert answer is Step.HELD
    assert everything(valkey) == before


@pytest.mark.parametrize(
    "switch",
    [
        pytest.param(lambda client: pause(client, "pi-jobs@beta"), id="another queue"),
        pytest.param(lambda client: client.hset("drain:beta", "until", ""), id="another host"),
        pytest.param(lambda client: client.hset("pause:*", "until", "1"), id="lapsed"),
    ],
)
def test_a_switch_that_does_not_concern_it_holds_nothing_back(valkey, host, switch):
    claimed = host.claim()
    switch(valkey)

    assert host.begin(claimed) is Step.DONE


@pytest.mark.parametrize("put", [lambda c, key: c.set(key, "x"), lambda c, key: c.rpush(key, "x")])
def test_what_could_not_be_listed_for_stop_does_not_begin_and_what_runs_ends(valkey, host, put):
    host.enqueue("local-2")
    running, claimed = host.start(), host.claim()
    valkey.delete(keys.containers("aaaa"))
    put(valkey, keys.containers("aaaa"))
    before = everything(valkey)

    assert host.begin(claimed) is Step.UNLISTED
    assert everything(valkey) == before
    gone = {"record": b"{}", "gone": "pi-job-local-1"}
    assert host.steps.end(running, outcome=Outcome.COMPLETED, reason=None, **gone) is Step.DONE
    valkey.delete(keys.containers("aaaa"))
    assert host.begin(claimed) is Step.DONE


def test_a_begin_that_landed_before_the_pause_stays_begun(valkey, host):
    claimed = host.start()
    pause(valkey, "*")

    assert host.begin(claimed) is Step.DONE


def test_the_old_token_of_a_job_popped_again_by_the_same_boot_has_no_say(valkey, host):
    first = host.claim()
    # The other host takes it over while this one stands still; then it comes back.
    other = Host(valkey, name="beta", host_id="bbbb")
    other.sweeper.tick([QUEUE])
    second = host.claim()
    before = everything(valkey)

    answers = {name: move(host, first) for name, move in MOVES.items()}

    assert set(answers.values()) == {Step.LOST}
    assert everything(valkey) == before
    assert second.put_backs == 1
    assert host.begin(second) is Step.DONE


@pytest.mark.parametrize("move", ["give back", "put off", "refuse", "end failed", "again"])
def test_a_begin_of_a_job_that_left_by_the_same_claim_has_lost(valkey, host, move):
    """It must not count as landed: a container would follow."""
    claimed = host.claim()
    MOVES[move](host, claimed)
    before = everything(valkey)

    assert host.begin(claimed) is Step.LOST
    assert everything(valkey) == before


def test_a_late_finish_leaves_a_stalled_job_failed(valkey, host):
    claimed = stalled(host)

    answer = host.end(claimed)

    assert answer is Step.LOST
    assert hash_of(valkey, "local-1")["status"] == "failed"
    assert records(valkey) == []
    assert [one["cause"] for one in records(valkey, "bbbb")] == ["stalled"]


def test_every_ending_and_every_beat_fits_into_a_full_server(valkey, host):
    host.enqueue("local-2", "local-3", "local-4", "local-5")
    begun_jobs = [host.start() for _ in range(3)]
    in_hand_jobs = [host.claim() for _ in range(2)]
    full(valkey)
    try:
        answers = [
            host.end(begun_jobs[0]),
            host.again(begun_jobs[1]),
            host.refuse(in_hand_jobs[0]),
            host.steps.give_back(in_hand_jobs[1]),
        ]
        host.beats.beat(begun_jobs)
        Sweeper.tick(host.sweeper, [QUEUE])
    finally:
        valkey.config_set("maxmemory", 0)

    assert answers == [Step.DONE] * 4
    assert_sound(valkey, [f"local-{number}" for number in range(1, 6)])


@pytest.mark.parametrize("has_lease", [False, True])
def test_a_full_server_lets_nothing_start(valkey, host, has_lease):
    from redis.exceptions import OutOfMemoryError

    claimed = host.claim()
    slot = Slot(slots=("slot:s:x:0",), beyond=(), claim="alpha#local-1#t/1", ttl_ms=60_000)
    valkey.set(slot.slots[0], slot.claim)
    full(valkey)
    before = everything(valkey)
    try:
        with pytest.raises(OutOfMemoryError):
            host.steps.begin(claimed, container="x", deadline_ms=1, slot=slot if has_lease else None)
    finally:
        valkey.config_set("maxmemory", 0)

    assert everything(valkey) == before


def test_nothing_unreadable_in_the_hash_stops_an_ending(valkey, host):
    claimed = host.claim()
    valkey.hset(
        keys.job(claimed.raw_id),
        mapping={"result_ttl": "nan", "failure_ttl": "1e300", "firstQueued": "x", "attempt": "-"},
    )

    assert host.end(claimed, Outcome.FAILED) is Step.DONE
    assert 0 < valkey.ttl(keys.job(claimed.raw_id)) <= 7 * 24 * 3600


def pause(client, scope, lasting=None):
    switches.pause(client, [scope], by="test", reason="", lasting=lasting)


def full(client):
    """Leave the server no memory to grow."""
    client.config_set("maxmemory", 1)


def test_the_taken_list_is_empty_after_each_leaving(valkey, host):
    for move in ("give back", "put off", "refuse", "begin", "end failed", "again"):
        host.enqueue(f"local-{move[:3].replace(' ', '-')}")
    host.claim()

    for move in ("give back", "put off", "refuse", "begin", "end failed", "again"):
        claimed = host.claim()
        MOVES[move](host, claimed)
        if move == "give back":
            host.refuse(host.claim())

    assert taken(valkey, host) == ["local-1"]
