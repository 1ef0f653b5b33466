"""Requests to stop and to cancel, their answers, and what nobody of ours has written."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import redis

from hosts import keys, stops, switches
from hosts.stops import Answer, Asked, Confirmed

LISTED = "containers:aaaa"
GONE, OPEN = Confirmed.GONE, Confirmed.UNCONFIRMED


def ask(client, *hosts, only=None, request_id="r1", **words):
    told = {"by": "ann", "reason": "fire", **words}
    return stops.ask(client, hosts, only=only, request_id=request_id, **told)


def read(client, *job_ids, host="alpha"):
    return stops.read(client, host=host, containers=LISTED, job_ids=job_ids)


def test_the_fleet_is_paused_for_good_and_every_host_asked_in_the_same_instant(valkey):
    switches.pause(valkey, [keys.FLEET], by="bob", reason="lunch", lasting=None)

    asked = ask(valkey, "alpha", "beta")

    held = switches.read(valkey, ("pi-jobs",))
    assert held.fleet == switches.PauseFlag(by="ann", reason="fire", since_ms=asked.at_ms, until_ms=None)
    for host in ("alpha", "beta"):
        assert valkey.hgetall(keys.stop_request(host)) == {
            b"id": b"r1",
            b"at": str(asked.at_ms).encode(),
            b"by": b"ann",
            b"reason": b"fire",
            b"with": b"pause",
        }
        assert valkey.ttl(keys.stop_request(host)) == -1
        assert read(valkey, host=host).stop == asked
    assert read(valkey, host="gamma") == Asked()


def test_one_host_is_drained_and_asked_and_no_other_is(valkey):
    asked = ask(valkey, "alpha", "beta", only="beta")

    held = switches.read(valkey, ("pi-jobs",), host="beta")
    assert (held.fleet, held.drain.since_ms, held.drain.until_ms) == (None, asked.at_ms, None)
    assert read(valkey, host="beta").stop == asked
    assert read(valkey, host="alpha").stop is None
    assert switches.undrain(valkey, "beta") == switches.Undrained(True, False, True)
    assert read(valkey, host="beta") == Asked()


def test_a_request_replaces_the_one_before_and_long_texts_are_cut(valkey):
    ask(valkey, "alpha")
    valkey.hset(keys.stop_request("alpha"), "leftover", "x")

    ask(valkey, "alpha", request_id="r2", reason="r" * 9000)

    found = valkey.hgetall(keys.stop_request("alpha"))
    assert (found[b"id"], len(found[b"reason"]), b"leftover" in found) == (b"r2", 500, False)


@pytest.mark.parametrize(
    ("reason", "lasting", "kept"),
    [
        ("lunch", None, True),
        ("lunch", timedelta(hours=1), True),
        ("", None, False),
        ("lunch", timedelta(0), False),
    ],
)
def test_a_stop_without_a_reason_leaves_that_of_the_pause_and_takes_its_end(valkey, reason, lasting, kept):
    before = switches.pause(valkey, [keys.FLEET], by="bob", reason=reason, lasting=lasting)

    asked = ask(valkey, "alpha", reason="")

    ours = switches.PauseFlag(by="ann", reason="", since_ms=asked.at_ms, until_ms=None)
    assert switches.read(valkey, ()).fleet == (replace(before, until_ms=None) if kept else ours)
    request = valkey.hgetall(keys.stop_request("alpha"))
    assert (request[b"by"], request[b"reason"]) == (b"ann", reason.encode() if kept else b"")


def test_a_stop_without_a_reason_replaces_a_pause_that_cannot_be_read(valkey):
    valkey.set(keys.pause(keys.FLEET), "x")
    ask(valkey, "alpha", reason="")
    assert switches.read(valkey, ()).fleet.by == "ann"


def test_what_is_asked_is_read_in_one_step_with_the_containers_only_while_a_stop_stands(valkey):
    valkey.hset(LISTED, "pi-job-1", "{}")
    stops.ask_cancel(valkey, "repeat:x:1", request_id="c1")

    assert read(valkey, "local-1", "repeat:x:1") == Asked(cancels={"repeat:x:1": "c1"})

    asked = ask(valkey, "alpha")
    assert read(valkey) == Asked(stop=asked, listed=frozenset({"pi-job-1"}))


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "r1"},
        {"at": "5"},
        {"id": "r1", "at": "soon"},
        {"id": "r1", "at": "-5"},
        {"id": "r1", "at": "9" * 17},
        {"id": "", "at": "5"},
        {"id": "a b", "at": "5"},
        {"id": "x" * 10_000, "at": "5"},
    ],
)
def test_a_request_that_none_of_ours_has_written_stops_nothing_and_is_told_apart(valkey, fields):
    valkey.hset(keys.stop_request("alpha"), mapping=fields)

    assert read(valkey) == Asked(is_unreadable=True)


def test_keys_of_a_wrong_type_are_no_orders_and_no_answers(valkey):
    valkey.set(keys.stop_request("alpha"), "x")
    valkey.rpush(keys.cancel_request("local-1"), "x")
    valkey.set(LISTED, "x")
    valkey.set(keys.stop_answer("alpha"), "x")

    assert read(valkey, "local-1") == Asked(is_unreadable=True)
    assert stops.answers(valkey, ("alpha", "beta")) == {}

    asked = ask(valkey, "alpha")
    assert read(valkey) == Asked(stop=asked)


def test_an_answer_replaces_the_one_before_and_lives_an_hour(valkey):
    stops.answer(valkey, host="alpha", request_id="r1", containers={"one": OPEN, "two": OPEN})
    stops.answer(valkey, host="alpha", request_id="r2", containers={"two": GONE})

    assert stops.answers(valkey, ("alpha", "beta")) == {"alpha": Answer("r2", {"two": GONE})}
    assert 3590 < valkey.ttl(keys.stop_answer("alpha")) <= 3600


def test_a_word_of_nobody_confirms_nothing(valkey):
    valkey.hset(keys.stop_answer("alpha"), mapping={"c:one": "yes", "two": "gone", b"c:\xff": "gone"})

    assert stops.answers(valkey, ("alpha",)) == {"alpha": Answer("", {"one": OPEN, "�": GONE})}


def test_a_cancel_is_asked_answered_by_name_and_its_request_is_gone(valkey):
    stops.ask_cancel(valkey, "local-1", request_id="c1")
    assert 50_000 < valkey.pttl(keys.cancel_request("local-1")) <= 60_000
    assert stops.cancel_answers(valkey, ("local-1",)) == {}

    stops.answer_cancel(valkey, "local-1", request_id="c1", host="alpha")

    assert stops.cancel_answers(valkey, ("local-1", "local-2")) == {"local-1": "alpha"}
    assert valkey.exists(keys.cancel_request("local-1")) == 0
    assert 290_000 < valkey.pttl(keys.cancel_answer("local-1")) <= 300_000
    assert stops.cancel_answers(valkey, ()) == {}


def test_a_new_request_forgets_the_answer_to_the_one_before_and_an_old_answer_leaves_it(valkey):
    stops.answer_cancel(valkey, "local-1", request_id="c1", host="alpha")

    stops.ask_cancel(valkey, "local-1", request_id="c2")
    assert stops.cancel_answers(valkey, ("local-1",)) == {}

    stops.answer_cancel(valkey, "local-1", request_id="c1", host="alpha")
    assert read(valkey, "local-1").cancels == {"local-1": "c2"}


def test_a_full_server_takes_orders_and_answers_all_the_same(valkey):
    valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            valkey.set("anything", "x")
        asked = ask(valkey, "alpha")
        stops.answer(valkey, host="alpha", request_id="r1", containers={"one": OPEN})
        stops.ask_cancel(valkey, "local-1", request_id="c1")
        stops.answer_cancel(valkey, "local-2", request_id="c2", host="alpha")
        switches.drain(valkey, "beta", by="ann", reason="")
    finally:
        valkey.config_set("maxmemory", 0)

    assert read(valkey, "local-1") == Asked(stop=asked, cancels={"local-1": "c1"})
    assert stops.cancel_answers(valkey, ("local-2",)) == {"local-2": "alpha"}
    assert set(switches.drains(valkey, ("beta",))) == {"beta"}


@pytest.mark.parametrize(
    ("stands", "answered", "told", "left"),
    [("mine", None, None, 0), ("theirs", None, None, 1), (None, "alpha", "alpha", 0), (None, None, None, 0)],
)
def test_only_the_own_unanswered_request_is_taken_back(valkey, stands, answered, told, left):
    if stands:
        valkey.set(keys.cancel_request("local-1"), stands)
    if answered:
        valkey.set(keys.cancel_answer("local-1"), answered)

    assert stops.withdraw_cancel(valkey, "local-1", request_id="mine") == told
    assert valkey.exists(keys.cancel_request("local-1")) == left


def test_what_stands_is_told_with_who_and_why_and_what_it_came_with(valkey):
    drains = stops.ask(valkey, (), by="bob", reason="disk", request_id="r1", only="beta")
    fleets = stops.ask(valkey, ("alpha",), by="a" * 999, reason="fire", request_id="r2")
    valkey.set(keys.stop_request("gamma"), "x")
    valkey.hset(keys.stop_request("delta"), mapping={"at": "9" * 400, "with": b"\xff"})

    blank = stops.Standing(by="", reason="", at_ms=0, came_with_drain=False)
    assert stops.standing(valkey, ("alpha", "beta", "gamma", "delta", "nobody")) == {
        "alpha": stops.Standing(by="a" * 500, reason="fire", at_ms=fleets.at_ms, came_with_drain=False),
        "beta": stops.Standing(by="bob", reason="disk", at_ms=drains.at_ms, came_with_drain=True),
        "gamma": blank,
        "delta": blank,
    }
    assert stops.standing(valkey, ()) == {}


def test_where_the_server_refuses_nobody_says_that_a_request_stands(valkey, valkey_server):
    valkey.acl_setuser("mute", enabled=True, nopass=True, keys=["*"], commands=["+ping"])
    mute = redis.Redis(unix_socket_path=str(valkey_server), username="mute", password="x")
    try:
        with pytest.raises(redis.exceptions.NoPermissionError):
            stops.standing(mute, ("alpha",))
    finally:
        mute.close()
        valkey.acl_deluser("mute")
