from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from datetime import timedelta

import pytest
import redis

from hosts import keys, stops, switches

A, B = "pi-jobs", "pi-jobs@mac"
MINUTE = timedelta(minutes=1)


def pause(client, *scopes, lasting=None, by="op", reason="why"):
    return switches.pause(client, scopes, by=by, reason=reason, lasting=lasting)


def server_ms(client):
    seconds, micro = client.time()
    return seconds * 1000 + micro // 1000


def move_end(client, key, ms):
    """Put the end of a switch where time would have brought it."""
    client.hset(key, "until", ms)


def test_nothing_is_paused_at_first(valkey):
    found = switches.read(valkey, (A, B))

    assert (found.fleet, found.queues, found.paused_queues) == (None, {A: None, B: None}, ())
    assert not found.all_paused
    assert not found.partly_paused


def test_a_pause_of_one_queue_says_who_why_and_since(valkey):
    before = server_ms(valkey)
    made = pause(valkey, B, by="ann", reason="disk full: höher")
    after = server_ms(valkey)

    found = switches.read(valkey, (A, B))

    assert found.flag(B) == made
    assert found.flag(A) is None
    assert (made.by, made.reason, made.until_ms) == ("ann", "disk full: höher", None)
    assert before <= made.since_ms <= after
    assert found.partly_paused
    assert found.paused_queues == (B,)


def test_a_pause_of_the_fleet_holds_every_queue_also_one_that_is_born_later(valkey):
    pause(valkey, keys.FLEET)

    found = switches.read(valkey, (A, "pi-jobs@born-later"))

    assert found.all_paused
    assert found.queues == {A: None, "pi-jobs@born-later": None}


def test_a_pause_adds_its_queues_to_the_known_ones_and_the_fleet_is_no_queue(valkey):
    pause(valkey, A, B)
    pause(valkey, keys.FLEET)

    assert valkey.smembers("queues:known") == {A.encode(), B.encode()}


def test_the_stored_form_is_the_agreed_one_and_does_not_expire(valkey):
    made = pause(valkey, A, by="ann", reason="r", lasting=MINUTE)

    assert valkey.hgetall("pause:pi-jobs") == {
        b"by": b"ann",
        b"reason": b"r",
        b"since": str(made.since_ms).encode(),
        b"until": str(made.since_ms + 60_000).encode(),
    }
    assert valkey.ttl("pause:pi-jobs") == -1


def test_each_pause_replaces_the_one_before_whole(valkey):
    pause(valkey, A, lasting=MINUTE)
    valkey.hset("pause:pi-jobs", "leftover", "x")

    pause(valkey, A, by="bob", reason="")

    found = switches.read(valkey, (A,)).flag(A)
    assert (found.by, found.reason, found.until_ms) == ("bob", "", None)
    assert valkey.hexists("pause:pi-jobs", "leftover") is False


@pytest.mark.parametrize("scope", [A, keys.FLEET])
def test_the_end_of_a_pause_is_judged_by_the_servers_clock(valkey, scope):
    pause(valkey, scope, lasting=MINUTE)
    now = server_ms(valkey)

    move_end(valkey, keys.pause(scope), now - 1)
    assert switches.read(valkey, (A,)).flag(A) is None

    move_end(valkey, keys.pause(scope), now + 60_000)
    assert switches.read(valkey, (A,)).flag(A).until_ms == now + 60_000


def test_a_pause_ends_by_itself(valkey):
    pause(valkey, A, lasting=timedelta(milliseconds=80))
    assert switches.read(valkey, (A,)).all_paused

    deadline = time.monotonic() + 5
    while switches.read(valkey, (A,)).all_paused:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_ended_pause_of_the_fleet_does_not_end_a_queues_own(valkey):
    pause(valkey, keys.FLEET, A, lasting=MINUTE)
    move_end(valkey, "pause:*", 1)

    assert switches.read(valkey, (A, B)).paused_queues == (A,)


@pytest.mark.parametrize("until", ["", "soon", "1e", "nan"])
def test_an_end_that_cannot_be_read_is_none(valkey, until):
    pause(valkey, A)
    move_end(valkey, "pause:pi-jobs", until)

    assert switches.read(valkey, (A,)).all_paused


def test_a_switch_of_a_wrong_type_holds(valkey):
    valkey.set("pause:pi-jobs", "yes")

    assert switches.read(valkey, (A,)).flag(A) == switches.PauseFlag(
        by="", reason="", since_ms=0, until_ms=None
    )


def test_resume_ends_a_queues_own_pause_and_tells_where_there_was_one(valkey):
    pause(valkey, A)

    assert switches.resume(valkey, (A, B)) == (A,)
    assert switches.resume(valkey, (A, B)) == ()


def test_a_queue_stays_paused_under_the_fleets_pause(valkey):
    pause(valkey, keys.FLEET, A)

    switches.resume(valkey, (A,))

    assert switches.read(valkey, (A,)).all_paused
    assert switches.resume(valkey, (keys.FLEET,)) == (keys.FLEET,)
    assert not switches.read(valkey, (A,)).all_paused


def test_resume_of_everything_ends_pauses_and_requests_to_stop_but_no_drain(valkey):
    pause(valkey, keys.FLEET, A, B)
    valkey.hset("pause:pi-jobs@found", "by", "x")
    for key in ("stop:req:mac", "stop:req:other", "drain:mac", "stop:ack:mac"):
        valkey.hset(key, "by", "x")

    ended = switches.resume_all(valkey, queues=("pi-jobs@found", A), hosts=("none", "mac"))

    assert ended == switches.Resumed(("*", "pi-jobs", "pi-jobs@found", "pi-jobs@mac"), ("mac",))
    assert set(valkey.keys()) == {b"queues:known", b"stop:req:other", b"drain:mac", b"stop:ack:mac"}
    assert switches.resume_all(valkey, hosts=("none", "mac")) == switches.Resumed((), ())


@pytest.mark.parametrize("asked", [["stop"], ["drain", "stop"], ["stop", "drain"], ["older"], ["text"]])
def test_the_end_of_the_fleets_pause_takes_its_requests_to_stop_back_and_nothing_else(valkey, asked):
    kept = {b"pause:pi-jobs", b"drain:mac", b"queues:known", b"stop:req:pc", b"stop:req:other"}
    pause(valkey, keys.FLEET, A)
    switches.drain(valkey, "mac", by="ann", reason="disk")
    valkey.hset("stop:req:pc", mapping={"id": "x", "with": "drain"})
    valkey.hset("stop:req:other", "id", "x")
    for one in asked:
        if one == "older":
            valkey.hset("stop:req:mac", "id", "x")
        elif one == "text":
            valkey.set("stop:req:mac", "x")
        else:
            only = "mac" if one == "drain" else None
            stops.ask(valkey, ("mac",), by="ann", reason="fire", request_id="r", only=only)

    found = [switches.resume_fleet(valkey, hosts=("none", "pc", "mac")) for _ in range(2)]

    assert found == [switches.Resumed(("*",), ("mac",)), switches.Resumed((), ())]
    assert set(valkey.keys()) == kept


def test_a_drain_is_read_beside_the_queues_and_pauses_none_of_them(valkey):
    valkey.hset("drain:mac", mapping={"by": "ann", "reason": "r", "since": 5, "until": ""})

    found = switches.read(valkey, (A,), host="mac")

    assert found.drain == switches.PauseFlag(by="ann", reason="r", since_ms=5, until_ms=None)
    assert not found.all_paused
    assert switches.read(valkey, (A,), host="other").drain is None


@pytest.mark.parametrize("lasting", [None, MINUTE])
def test_a_drain_says_who_and_why_and_ends_by_undrain_or_by_itself(valkey, lasting):
    made = switches.drain(valkey, "mac", by="ann", reason="new disk", lasting=lasting)

    assert switches.read(valkey, (A,), host="mac").drain == made
    assert made.until_ms == (None if lasting is None else made.since_ms + 60_000)
    assert switches.drains(valkey, ("mac", "pc")) == {"mac": made}
    assert valkey.smembers("queues:known") == set()
    if lasting:
        move_end(valkey, "drain:mac", server_ms(valkey) - 1)
        assert switches.drains(valkey, ("mac", "pc")) == {}
    assert [switches.undrain(valkey, "mac").was_drained for _ in range(2)] == [True, False]
    assert switches.drains(valkey, ()) == {}


@pytest.mark.parametrize(
    ("asked", "stands"),
    [
        pytest.param(["mac"], False, id="the host's"),
        pytest.param([None], True, id="the fleet's"),
        pytest.param(["mac", None], True, id="the fleet's after it"),
        pytest.param([None, "mac"], True, id="the fleet's before it"),
        pytest.param(["older"], True, id="one that does not say"),
    ],
)
def test_the_end_of_a_drain_takes_back_the_request_that_came_with_it_and_never_the_fleets(
    valkey, asked, stands
):
    valkey.hset("stop:req:pc", mapping={"id": "x", "with": "drain"})
    for only in asked:
        if only == "older":
            valkey.hset("stop:req:mac", "id", "x")
        else:
            stops.ask(valkey, ("mac",), by="ann", reason="fire", request_id="r", only=only)

    ended = switches.undrain(valkey, "mac")

    assert (ended.is_asked_to_stop, ended.took_back) == (stands, not stands)
    assert sorted(valkey.keys("stop:*")) == [b"stop:req:mac"] * stands + [b"stop:req:pc"]


def test_long_texts_are_cut(valkey):
    made = pause(valkey, A, by="b" * 9000, reason="r" * 9000)

    assert (len(made.by), len(made.reason)) == (500, 500)
    assert switches.read(valkey, (A,)).flag(A) == made


def test_a_pause_of_nothing_is_a_mistake(valkey):
    with pytest.raises(ValueError, match="without a queue"):
        pause(valkey)


def test_scripts_of_others_judge_the_same_keys_alike(valkey):
    text = "for _, key in ipairs(KEYS) do if holds(key, now_ms()) then return 1 end end return 0"
    script = valkey.register_script(switches.HOLDS + text)
    named = keys.switches(queue=A, host="mac")

    assert named == ("pause:*", "pause:pi-jobs", "drain:mac")
    assert script(keys=named) == 0
    for scope in (A, keys.FLEET):
        pause(valkey, scope)
        assert script(keys=named) == 1
        move_end(valkey, keys.pause(scope), server_ms(valkey))
        assert script(keys=named) == 0
    valkey.hset("drain:mac", "by", "x")
    assert script(keys=named) == 1


def test_pauses_and_resumes_at_once_leave_all_queues_alike(valkey, valkey_url):
    """Each is one step: no reader ever sees one queue of two switched."""
    stop, seen = threading.Event(), set()

    def watch():
        while not stop.is_set():
            seen.add(switches.read(valkey, (A, B)).partly_paused)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(200):
        pause(valkey, A, B)
        switches.resume(valkey, (A, B))
    stop.set()
    watcher.join()

    assert seen == {False}


def test_a_full_server_can_be_paused_and_resumed(valkey, full_server):
    with full_server():
        switches.pause(valkey, ["pi-jobs"], by="op", reason="full")
        assert switches.read(valkey, ["pi-jobs"]).all_paused

        switches.pause(valkey, [keys.FLEET], by="op", reason="full")
        switches.resume_all(valkey)
        assert not switches.read(valkey, ["pi-jobs"]).paused_queues


@pytest.fixture
def full_server(valkey):
    """A way to make the server refuse whatever needs memory for as long as a block lasts."""

    @contextmanager
    def full():
        valkey.config_set("maxmemory", 1)
        try:
            with pytest.raises(redis.exceptions.OutOfMemoryError):
                valkey.set("anything", "x")
            yield
        finally:
            valkey.config_set("maxmemory", 0)

    return full


def test_a_switch_with_instants_of_thousands_of_digits_holds_all_the_same(valkey):
    valkey.hset("pause:pi-jobs", mapping={"by": "x", "since": "9" * 5000, "until": "9" * 5000})

    assert switches.read(valkey, ["pi-jobs"]).paused_queues == ("pi-jobs",)
