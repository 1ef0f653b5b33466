"""The pop is the claim: what comes out is ours, once, and nothing that stands in the queue can stop it."""

from __future__ import annotations

import json
import pickle
import threading
import zlib

import pytest
import redis
from rq.job import Job

from dispatch.ids import rq_id
from dispatch.jobs import JobData, Malformed
from dispatch.queue import keys
from dispatch.queue.popper import Claimed, Dropped, Empty, Paused
from dispatch.queue.transitions import Step
from hosts import switches
from pidispatch_site import clients
from tests.dispatch.queuekit import JOB, QUEUE, Host, assert_sound, hash_of, listed, now_ms, taken

NAMES = keys.queue_keys(QUEUE)


@pytest.fixture
def host(valkey):
    return Host(valkey)


def pop(host: Host, how: str):
    return host.popper.pop() if how == "pop" else host.popper.wait(1)


BOTH = pytest.mark.parametrize("how", ["pop", "wait"])


@BOTH
def test_a_claim_says_all_that_is_known_of_the_job(valkey, host, how):
    before = now_ms(valkey)
    host.producer.enqueue(QUEUE, "repeat:nightly:17", JOB, scope_hash="abcd")

    claimed = pop(host, how)

    assert isinstance(claimed, Claimed)
    assert (claimed.queue, claimed.job_id, claimed.rq_id) == (
        *(QUEUE, "repeat:nightly:17"),
        "repeat_3anightly_3a17",
    )
    assert (claimed.attempt, claimed.attempts, claimed.put_backs) == (0, 2, 0)
    assert claimed.job == JOB
    assert claimed.scope == "abcd"
    assert (claimed.attempt_log, claimed.reason, claimed.since_ms) == ((), None, None)
    assert before <= claimed.first_queued_ms <= claimed.now_ms <= now_ms(valkey)
    assert abs(claimed.queued_at_ms - before) < 2000
    assert abs(claimed.created_ms - before) < 2000


@BOTH
def test_a_claim_is_written_to_the_job_and_to_the_taken_list(valkey, host, how):
    host.enqueue("local-1")

    claimed = pop(host, how)

    job = hash_of(valkey, "local-1")
    assert (job["taker"], job["host"], job["status"]) == (claimed.token, "alpha", "queued")
    assert taken(valkey, host) == ["local-1"]
    assert listed(valkey) == []
    assert_sound(valkey, ["local-1"])


@BOTH
def test_jobs_come_out_in_the_order_in_which_they_went_in(host, how):
    host.enqueue("local-1", "local-2", "local-3")

    assert [pop(host, how).job_id for _ in range(3)] == ["local-1", "local-2", "local-3"]


def test_tokens_of_all_queues_of_a_boot_differ(host):
    first, second = host.owner.next_token(), host.owner.next_token()

    assert (first, second) == ("aaaa-00000001/1", "aaaa-00000001/2")


def test_an_empty_queue_answers_empty(host):
    assert host.popper.pop() == Empty()
    assert host.popper.wait(0.05) == Empty()


def test_a_waiting_pop_gets_what_comes(valkey_url, host):
    other = Host(clients.popper_client(valkey_url, pop_seconds=5))
    got = []
    waiting = threading.Thread(target=lambda: got.append(other.popper.wait(5)))
    waiting.start()
    host.enqueue("local-1")
    waiting.join(timeout=5)

    assert [one.job_id for one in got] == ["local-1"]


@BOTH
def test_under_a_pause_nothing_comes_out_and_the_order_is_kept(valkey, host, how):
    host.enqueue("local-1", "local-2")
    switches.pause(valkey, [QUEUE], by="test", reason="")

    assert pop(host, how) == Paused()
    assert pop(host, how) == Paused()

    assert listed(valkey) == ["local-1", "local-2"]
    assert taken(valkey, host) == []
    assert "taker" not in hash_of(valkey, "local-1")


def test_a_paused_queue_is_paused_also_when_it_is_empty(valkey, host):
    switches.pause(valkey, [QUEUE], by="test", reason="")

    assert host.popper.pop() == Paused()


def test_under_a_pause_the_claim_of_somebody_who_does_not_have_it_is_taken_away(valkey):
    host = Host(valkey, delays=lambda point: pause_fleet(valkey) if point == "after move" else None)
    host.enqueue("local-1")
    valkey.hset(keys.job(b"local-1"), mapping={"taker": "bbbb-00000009/7", "host": "beta"})

    assert host.popper.wait(1) == Paused()
    assert_sound(valkey, ["local-1"])


def test_a_pause_that_comes_between_move_and_claim_puts_it_back_to_the_front(valkey):
    host = Host(valkey, delays=lambda point: pause_fleet(valkey) if point == "after move" else None)
    host.enqueue("local-1", "local-2")

    assert host.popper.wait(1) == Paused()

    assert listed(valkey) == ["local-1", "local-2"]


def test_a_drained_host_takes_nothing_and_others_do(valkey, host):
    host.enqueue("local-1")
    valkey.hset("drain:alpha", mapping={"by": "test", "until": ""})

    assert host.popper.pop() == Paused()
    assert Host(valkey, name="beta", host_id="bbbb").claim().job_id == "local-1"


@BOTH
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda client, key: client.delete(key), id="hash gone"),
        pytest.param(lambda client, key: overwrite(client, key), id="no hash"),
        pytest.param(lambda client, key: client.hset(key, "status", "finished"), id="finished"),
        pytest.param(lambda client, key: client.hset(key, "status", "started"), id="started"),
        pytest.param(lambda client, key: client.hset(key, "status", "canceled"), id="canceled"),
        pytest.param(lambda client, key: client.hdel(key, "status"), id="no status"),
    ],
)
def test_an_id_that_is_no_waiting_job_is_dropped(valkey, host, how, spoil):
    host.enqueue("local-1", "local-2")
    spoil(valkey, keys.job(b"local-1"))

    assert pop(host, how) == Dropped("local-1")

    assert taken(valkey, host) == []
    assert pop(host, how).job_id == "local-2"


@BOTH
def test_an_id_that_stands_twice_runs_once(valkey, host, how):
    host.enqueue("local-1", "local-2")
    valkey.lpush(NAMES.jobs, "local-1")

    first, second = pop(host, how), pop(host, how)

    assert first.job_id == "local-1"
    assert second == Dropped("local-1")
    assert taken(valkey, host) == ["local-1"]
    assert host.begin(first) is Step.DONE


def test_an_id_in_another_hosts_hand_is_not_ours(valkey, host):
    host.enqueue("local-1")
    theirs = Host(valkey, name="beta", host_id="bbbb")
    claimed = theirs.claim()
    valkey.lpush(NAMES.jobs, "local-1")

    assert host.popper.pop() == Dropped("local-1")
    assert theirs.begin(claimed) is Step.DONE


def test_a_taker_that_does_not_have_it_does_not_lose_the_job(valkey, host):
    host.enqueue("local-1")
    valkey.hset(keys.job(b"local-1"), "taker", "bbbb-00000009/7")

    claimed = host.claim()

    assert hash_of(valkey, "local-1")["taker"] == claimed.token
    assert_sound(valkey, ["local-1"])


def test_what_was_put_back_between_move_and_claim_is_not_claimed(valkey):
    def take_away(point):
        if point == "after move":
            valkey.lrem(NAMES.taken(host.owner.boot), 1, "local-1")
            valkey.lpush(NAMES.jobs, "local-1")

    host = Host(valkey, delays=take_away)
    host.enqueue("local-1")

    assert host.popper.wait(1) == Dropped("local-1")
    assert listed(valkey) == ["local-1"]


class LosesAnswers(redis.Redis):
    """A client whose scripts land while their answers do not arrive, as often as told."""

    lose = 0

    def evalsha(self, *args, **kwargs):
        answer = super().evalsha(*args, **kwargs)
        if self.lose:
            self.lose -= 1
            raise redis.exceptions.TimeoutError("Timeout reading from socket")
        return answer


def test_the_next_call_claims_what_a_lost_answer_had_claimed(valkey):
    host = Host(LosesAnswers(connection_pool=valkey.connection_pool))
    host.enqueue("local-1")
    host.client.script_flush()
    host.popper.pop()
    host.sweeper.tick([QUEUE])
    host.sweeper.tick([QUEUE])
    host.client.lose = 1
    with pytest.raises(redis.exceptions.TimeoutError):
        host.popper.wait(1)

    claimed = host.popper.pop()

    assert isinstance(claimed, Claimed)
    assert hash_of(valkey, "local-1")["taker"] == claimed.token
    assert host.begin(claimed) is Step.DONE


PAYLOAD = ["dispatch.jobs.run", None, [], {"job": {"v": 1, "data": {"kind": "local"}}}]


class Explodes:
    def __reduce__(self):
        return pytest.fail, ("a payload was unpickled",)


@BOTH
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x80\x04\x95", id="garbage"),
        pytest.param(pickle.dumps(Explodes()), id="pickle"),
        pytest.param(
            zlib.compress(pickle.dumps(("dispatch.jobs.run", None, (), Explodes()))), id="compressed"
        ),
        pytest.param(json.dumps(PAYLOAD).encode(), id="missing field"),
        pytest.param(json.dumps(["os.system", None, ["true"], {}]).encode(), id="foreign function"),
        pytest.param(json.dumps([*PAYLOAD[:3], {"job": {"v": 2, "data": {}}}]).encode(), id="wrong version"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(zlib.compress(b"0" * 50_000_000), id="bomb"),
    ],
)
def test_a_malformed_job_is_claimed_and_can_be_refused(valkey, host, how, data):
    host.enqueue("local-1", "local-2")
    valkey.hset(keys.job(b"local-1"), "data", data)

    claimed = pop(host, how)

    assert isinstance(claimed, Claimed)
    assert isinstance(claimed.job, Malformed)
    assert host.refuse(claimed) is Step.DONE
    assert hash_of(valkey, "local-1")["status"] == "finished"
    assert isinstance(pop(host, how).job, JobData)


@BOTH
@pytest.mark.parametrize("raw_id", [b"\xff\xfe", b"", b"a b", b"../../etc", b"a:b", b"\n", b"x" * 5000])
def test_an_id_that_no_producer_of_ours_writes_is_a_job_all_the_same(valkey, host, how, raw_id):
    valkey.hset(keys.job(raw_id), mapping={"status": "queued", "data": "{}", "origin": QUEUE})
    valkey.rpush(NAMES.jobs, raw_id)

    claimed = pop(host, how)

    assert claimed.raw_id == raw_id
    assert isinstance(claimed.job, Malformed)
    assert claimed.job_id == claimed.rq_id
    assert host.refuse(claimed) is Step.DONE
    assert valkey.hget(keys.job(raw_id), "status") == b"finished"


def test_a_job_of_a_stock_rq_queue_is_claimed_as_malformed(valkey, host):
    from rq import Queue

    Queue(QUEUE, connection=valkey).enqueue("os.getpid", job_id="stock-1")

    claimed = host.claim()

    assert (claimed.job_id, claimed.attempts, type(claimed.job)) == ("stock-1", 1, Malformed)
    assert claimed.first_queued_ms > 0
    assert Job.exists("stock-1", valkey)


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        pytest.param("attempt", "-1", "attempt", 0, id="negative"),
        pytest.param("attempts", "0", "attempts", 1, id="none allowed"),
        pytest.param("attempts", "9" * 40, "attempts", 1, id="huge"),
        pytest.param("putBacks", "x", "put_backs", 0, id="no number"),
        pytest.param("attemptLog", "[1", "attempt_log", (), id="broken log"),
        pytest.param("attemptLog", '{"a": 1}', "attempt_log", (), id="log of a wrong shape"),
        pytest.param("attemptLog", '[1, {"a": 1}]', "attempt_log", ({"a": 1},), id="entry of a wrong shape"),
        pytest.param("attemptLog", "[" * 5000, "attempt_log", (), id="deep log"),
        pytest.param("enqueued_at", "yesterday", "queued_at_ms", None, id="no time"),
        pytest.param("created_at", "2026-01-01T00:00:00", "created_ms", None, id="no zone"),
        pytest.param("scope", "", "scope", None, id="empty"),
    ],
)
def test_a_field_that_makes_no_sense_reads_as_unset(valkey, host, name, value, attribute, expected):
    host.enqueue("local-1")
    valkey.hset(keys.job(b"local-1"), name, value)

    assert getattr(host.claim(), attribute) == expected


@BOTH
def test_each_pop_makes_its_boot_known_to_the_sweep(valkey, host, how):
    pop(host, how) if how == "pop" else host.popper.wait(0.01)

    assert valkey.zscore(NAMES.takers, host.owner.boot) is not None


def test_ids_are_natural_again_after_the_queue(valkey, host):
    job_id = "gh-ü/_#1"
    host.enqueue(job_id)

    claimed = host.claim()

    assert (claimed.job_id, claimed.rq_id) == (job_id, rq_id(job_id))


def pause_fleet(client):
    switches.pause(client, ["*"], by="test", reason="")


def overwrite(client, key):
    client.delete(key)
    client.set(key, "text")
