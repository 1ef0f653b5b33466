from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import redis

from dispatch.money.ledger import Granted, Ledger, ReserveRequest
from dispatch.money.tokens import TokenCounter
from dispatch.money.windows import COUNTER_TTL, GRANT_TTL, Caps, Window, tokens_are_spent
from pidispatch_site.clients import VALKEY_FAULTS

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "budget-windows.json").read_text())["cases"]
NOW = datetime.fromisoformat("2026-01-05T23:00:00Z")
TOMORROW = NOW + timedelta(hours=2)
TODAY, GRANT = "budget:t:2026-01-05", "budget:r:local-1:0"
TWO_DAYS = COUNTER_TTL[Window.DAY].total_seconds()
ASK = ReserveRequest(
    job_id="local-1",
    attempt=0,
    token="boot/1",
    first_queued_ms=5,
    now_ms=int(NOW.timestamp() * 1000),
    caps=Caps(day=25),
)


@pytest.fixture
def tokens(valkey: redis.Redis) -> TokenCounter:
    return TokenCounter(valkey)


@pytest.fixture
def ledger(valkey: redis.Redis) -> Ledger:
    ledger = Ledger(valkey)
    ledger.reserve(ASK)
    return ledger


@pytest.mark.parametrize(
    ("given", "out"),
    [
        pytest.param(case["in"], case["out"], id=case["name"])
        for case in CASES
        if case["in"]["op"] == "tokens"
    ],
)
def test_the_decision_is_the_references(tokens, valkey, given, out):
    if given["counter"] is not None:
        valkey.set(TODAY, given["counter"], ex=60)

    # Without a cap nobody reads it.
    spent = tokens.spent(NOW) if given["cap"] is not None else 0
    full = tokens_are_spent(spent, cap=given["cap"])

    assert {"allowed": not full, "reason": "daily-token-cap" if full else "ok", "spent": spent} == out


def test_an_attempt_is_counted_once_however_often_and_whenever_it_is_told(tokens, valkey, ledger):
    valkey.expire(GRANT, 100)

    told = [tokens.record("local-1", 0, 300, now=now) for now in (NOW, NOW, TOMORROW)]

    assert told == [True, False, False]
    assert (tokens.spent(NOW), tokens.spent(TOMORROW)) == (300, 0)
    assert 0 < valkey.ttl(GRANT) <= 100 < valkey.ttl(TODAY) <= TWO_DAYS


def test_attempts_and_jobs_add_up_and_leave_the_lifetime_alone(tokens, valkey, ledger):
    tokens.record("local-1", 0, 300, now=NOW)
    valkey.expire(TODAY, 100)

    assert [tokens.record(job, attempt, 20, now=NOW) for job, attempt in (("local-1", 1), ("local-2", 0))]
    assert tokens.spent(NOW) == 340
    assert valkey.ttl(TODAY) <= 100


def test_a_later_job_of_the_same_id_is_counted_again(tokens, ledger):
    tokens.record("local-1", 0, 300, now=NOW)
    ledger.reserve(
        ReserveRequest(
            job_id="local-1",
            attempt=0,
            token="boot/2",
            first_queued_ms=6,
            now_ms=ASK.now_ms,
            caps=Caps(day=9),
        )
    )

    assert tokens.record("local-1", 0, 300, now=NOW)
    assert tokens.spent(NOW) == 600


def test_without_a_grant_tokens_count_once_and_what_is_left_behind_is_no_grant(tokens, valkey):
    ledger = Ledger(valkey)

    assert [tokens.record("local-1", 0, 300, now=NOW) for _ in range(2)] == [True, False]
    assert 0 < valkey.ttl(GRANT) <= GRANT_TTL.total_seconds()
    assert not ledger.is_reserved("local-1", 0, first_queued_ms=5)
    assert not ledger.refund("local-1", 0, token="boot/1")
    answer = ledger.reserve(ASK)
    assert isinstance(answer, Granted)
    assert not answer.repeated


@pytest.mark.parametrize("nothing", [0, -5])
def test_nothing_is_not_counted(tokens, valkey, nothing):
    assert not tokens.record("local-1", 0, nothing, now=NOW)
    assert valkey.keys() == []


def test_a_figure_beyond_all_bounds_fills_the_counter_and_cannot_break_it(tokens):
    assert [tokens.record("local-1", attempt, 10**30, now=NOW) for attempt in range(2)] == [True, True]
    assert tokens.spent(NOW) == 2**53 - 1


@pytest.mark.parametrize("junk", ["many", "1.5", "", "007", "1" * 17, None])
def test_a_counter_that_is_no_number_is_refused_and_nothing_is_noted(tokens, valkey, ledger, junk):
    valkey.sadd(TODAY, "of another type") if junk is None else valkey.set(TODAY, junk)

    for step in (lambda: tokens.spent(NOW), lambda: tokens.record("local-1", 0, 300, now=NOW)):
        with pytest.raises(redis.exceptions.ResponseError, match=r"whole number|WRONGTYPE"):
            step()

    assert not valkey.hexists(GRANT, "tokens")


def test_a_full_server_counts_nothing_and_the_repeat_once(tokens, valkey, ledger):
    valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(VALKEY_FAULTS):
            tokens.record("local-1", 0, 300, now=NOW)
    finally:
        valkey.config_set("maxmemory", 0)

    assert not valkey.hexists(GRANT, "tokens")
    assert [tokens.record("local-1", 0, 300, now=NOW) for _ in range(2)] == [True, False]
    assert tokens.spent(NOW) == 300


def test_a_counter_that_somebody_left_without_a_lifetime_gets_one(tokens, valkey):
    valkey.set(TODAY, 3)

    tokens.record("local-1", 0, 300, now=NOW)

    assert 0 < valkey.ttl(TODAY) <= TWO_DAYS
