from __future__ import annotations

import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from dispatch.instants import instant_of
from dispatch.money.ledger import (
    Blocked,
    Granted,
    Ledger,
    NotHeld,
    ReserveRequest,
    ScopeCaps,
    Stale,
    valkey_now,
)
from dispatch.money.windows import COUNTER_TTL, GRANT_TTL, Caps, Window, counter_key
from pidispatch_site import clients
from pidispatch_site.clients import VALKEY_FAULTS
from runs.outcome import Reason
from tests.dispatch.consolekit import own_server

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "budget-windows.json").read_text())["cases"]
SCOPE = "0123456789abcdef"
MIDDAY = int(datetime.fromisoformat("2026-01-05T12:00:00Z").timestamp() * 1000)
HOUR = 3_600_000
OURS, THEIRS = "boot-1/7", "boot-2/1"
ASK = ReserveRequest(
    job_id="local-1", attempt=0, token=OURS, first_queued_ms=5, now_ms=MIDDAY, caps=Caps(day=25)
)
TODAY = "budget:2026-01-05"


@pytest.fixture
def ledger(valkey: redis.Redis) -> Ledger:
    return Ledger(valkey)


def counters(valkey: redis.Redis) -> dict[str, int]:
    return {
        key.decode(): int(valkey.get(key)) for key in valkey.keys("budget:*") if valkey.type(key) == b"string"
    }


@pytest.mark.parametrize(
    ("given", "out"),
    [
        pytest.param(case["in"], case["out"], id=case["name"])
        for case in CASES
        if case["in"]["op"] == "reserve"
    ],
)
def test_the_decision_is_the_references(ledger, valkey, given, out):
    at = datetime.fromisoformat(given["at"])
    for window in Window:
        if given["counters"][window.value]:
            valkey.set(counter_key("budget", window, at), given["counters"][window.value], ex=77)
    before = counters(valkey)
    now_ms = (at - instant_of(0)) // timedelta(milliseconds=1)

    answer = ledger.reserve(
        replace(ASK, now_ms=now_ms, caps=Caps(**given["caps"]), hold_percent=given["pct"])
    )

    if out["allowed"]:
        assert isinstance(answer, Granted)
        assert len(answer.counters) == len([window for window in out["windows"].values() if window])
        assert counters(valkey) == before | out["counters"]
        assert {key: valkey.ttl(key) for key in answer.counters} == {
            key: out["ttls"].get(key, 77) for key in answer.counters
        }
        assert ledger.refund("local-1", 0, token=OURS) is True
        assert counters(valkey) == before | out["afterRefund"]
    else:
        # ⚑ A refusal takes nothing (contracts 4): of a refused case only the decision is the reference's.
        window = out["blockedWindow"]
        assert answer == Blocked(
            reason=Reason(out["reason"]),
            window=Window(window),
            reserved=out["windows"][window]["reserved"] - 1,
            cap=out["windows"][window]["cap"],
        )
        assert ledger.refund("local-1", 0, token=OURS) is False
        assert counters(valkey) == before


def test_a_grant_is_stored_for_the_attempt_and_nothing_else_is(ledger, valkey):
    answer = ledger.reserve(ASK)

    assert answer == Granted(token=OURS, instant_ms=MIDDAY, counters=(TODAY,), repeated=False)
    assert valkey.hgetall("budget:r:local-1:0") == {
        b"windows": TODAY.encode(),
        b"instant": str(MIDDAY).encode(),
        b"token": OURS.encode(),
        b"tokenAt": str(MIDDAY).encode(),
        b"firstQueued": b"5",
    }
    assert sorted(valkey.keys()) == [TODAY.encode(), b"budget:r:local-1:0"]
    assert GRANT_TTL.total_seconds() - 5 < valkey.ttl("budget:r:local-1:0") <= GRANT_TTL.total_seconds()


def test_a_refusal_stores_nothing_so_a_raised_cap_frees_the_job(ledger, valkey):
    valkey.set(TODAY, 25, ex=99)

    refused = [ledger.reserve(replace(ASK, now_ms=MIDDAY + second)) for second in range(100)]
    after_refusals = (valkey.keys(), valkey.get(TODAY))
    raised = ledger.reserve(replace(ASK, caps=Caps(day=26)))

    assert set(refused) == {Blocked(reason=Reason.OVER_BUDGET, window=Window.DAY, reserved=25, cap=25)}
    assert after_refusals == ([TODAY.encode()], b"25")
    assert isinstance(raised, Granted)


def test_a_job_that_is_put_back_is_not_charged_twice(ledger, valkey):
    ledger.reserve(ASK)

    again = ledger.reserve(replace(ASK, token=THEIRS, now_ms=MIDDAY + 24 * HOUR))

    assert again == Granted(token=THEIRS, instant_ms=MIDDAY, counters=(TODAY,), repeated=True)
    assert counters(valkey) == {TODAY: 1}


def test_a_repeat_is_answered_even_when_the_cap_is_reached(ledger):
    ledger.reserve(ASK)

    assert isinstance(ledger.reserve(replace(ASK, caps=Caps(day=1))), Granted)


def test_a_grant_without_the_instant_of_its_token_can_be_taken_over(ledger, valkey):
    ledger.reserve(ASK)
    valkey.hdel("budget:r:local-1:0", "tokenAt")

    assert ledger.reserve(replace(ASK, token=THEIRS)).token == THEIRS


def test_a_refund_is_for_the_grants_holder_goes_to_its_day_and_happens_once(ledger, valkey):
    ledger.reserve(ASK)
    ledger.reserve(replace(ASK, job_id="local-2", now_ms=MIDDAY + 13 * HOUR))

    refunds = [ledger.refund("local-1", 0, token=token) for token in (THEIRS, OURS, OURS)]

    assert refunds == [False, True, False]
    assert counters(valkey) == {TODAY: 0, "budget:2026-01-06": 1}
    assert valkey.keys("budget:r:*") == [b"budget:r:local-2:0"]


def test_a_refund_never_goes_below_zero_nor_revives_a_counter(ledger, valkey):
    everything = Caps(day=9, week=9, month=9)
    ledger.reserve(replace(ASK, caps=everything))
    valkey.set(TODAY, 0, ex=50)
    valkey.delete("budget:w:2026-01-05")

    assert ledger.refund("local-1", 0, token=OURS) is True
    assert counters(valkey) == {TODAY: 0, "budget:m:2026-01": 0}


def test_a_counter_gets_its_lifetime_once(ledger, valkey):
    ledger.reserve(ASK)
    valkey.expire(TODAY, 100)

    ledger.refund("local-1", 0, token=OURS)
    ledger.reserve(ASK)

    assert valkey.ttl(TODAY) <= 100


def test_a_counter_that_somebody_left_without_a_lifetime_gets_one(ledger, valkey):
    valkey.set(TODAY, 3)

    ledger.reserve(ASK)

    assert 0 < valkey.ttl(TODAY) <= COUNTER_TTL[Window.DAY].total_seconds()


SCOPED = replace(ASK, caps=Caps(day=5, week=9), scope=ScopeCaps(scope_hash=SCOPE, caps=Caps(day=2, month=3)))


@pytest.mark.parametrize(
    ("stand", "hold", "blocked"),
    [
        pytest.param(
            {f"budget:s:{SCOPE}:2026-01-05": 2},
            None,
            Blocked(reason=Reason.SCOPE_CAP, window=Window.DAY, reserved=2, cap=2),
            id="scope",
        ),
        pytest.param(
            {f"budget:s:{SCOPE}:m:2026-01": 7, TODAY: 5},
            None,
            Blocked(reason=Reason.SCOPE_CAP, window=Window.MONTH, reserved=7, cap=3),
            id="scope before global",
        ),
        pytest.param(
            {TODAY: 4, "budget:w:2026-01-05": 9},
            80,
            Blocked(reason=Reason.OVER_BUDGET, window=Window.WEEK, reserved=9, cap=9),
            id="over before held",
        ),
        pytest.param(
            {TODAY: 4},
            80,
            Blocked(reason=Reason.SOFT_HOLD, window=Window.DAY, reserved=4, cap=5),
            id="held",
        ),
    ],
)
def test_the_scope_is_tested_first_then_the_worst_of_the_global_windows(ledger, valkey, stand, hold, blocked):
    for key, count in stand.items():
        valkey.set(key, count, ex=60)

    assert ledger.reserve(replace(SCOPED, hold_percent=hold)) == blocked
    assert counters(valkey) == stand


def test_a_worker_without_a_cap_a_day_cannot_ask():
    with pytest.raises(ValueError, match="cap a day"):
        replace(ASK, caps=Caps(week=5))


@pytest.mark.parametrize(
    ("key", "junk"),
    [
        pytest.param("budget:w:2026-01-05", "many", id="a word"),
        pytest.param("budget:w:2026-01-05", "1.5", id="a fraction"),
        pytest.param("budget:w:2026-01-05", "", id="nothing"),
        pytest.param("budget:w:2026-01-05", "007", id="a number to us and not to INCR"),
        pytest.param("budget:w:2026-01-05", "-99999999999999999999", id="too long for INCR"),
    ],
)
def test_a_counter_that_is_no_number_refuses_and_nothing_is_taken(ledger, valkey, key, junk):
    valkey.set(key, junk)

    with pytest.raises(redis.exceptions.ResponseError, match="whole number"):
        ledger.reserve(replace(ASK, caps=Caps(day=5, week=5)))

    assert valkey.keys() == [key.encode()]


@pytest.mark.parametrize("key", ["budget:w:2026-01-05", "budget:r:local-1:0"])
def test_a_key_of_another_type_refuses_and_nothing_is_taken(ledger, valkey, key):
    valkey.sadd(key, "x")

    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        ledger.reserve(replace(ASK, caps=Caps(day=5, week=5)))

    assert valkey.keys() == [key.encode()]


@pytest.mark.parametrize("junk", ["many", "0x10", "007", None])
def test_a_counter_that_is_no_number_does_not_keep_the_others_from_being_paid_back(ledger, valkey, junk):
    ledger.reserve(replace(ASK, caps=Caps(day=5, week=5)))
    valkey.delete(TODAY)
    valkey.set(TODAY, junk) if junk else valkey.sadd(TODAY, "of another type")

    assert ledger.refund("local-1", 0, token=OURS) is True
    assert valkey.get("budget:w:2026-01-05") == b"0"
    assert valkey.get(TODAY) == junk.encode() if junk else valkey.type(TODAY) == b"set"


@pytest.fixture
def full(valkey: redis.Redis) -> Iterator[redis.Redis]:
    """The server with no memory left for anything; it has some again afterwards."""
    yield valkey
    valkey.config_set("maxmemory", 0)


def test_a_full_server_grants_nothing_and_takes_nothing(ledger, full):
    valkey = full
    ledger.reserve(ASK)
    valkey.config_set("maxmemory", 1)

    for request in (replace(ASK, job_id="local-2"), replace(ASK, token=THEIRS), replace(SCOPED, attempt=1)):
        fail(lambda request=request: ledger.reserve(request))

    assert counters(valkey) == {TODAY: 1}
    assert sorted(valkey.keys()) == [TODAY.encode(), b"budget:r:local-1:0"]
    assert valkey.hget("budget:r:local-1:0", "token") == OURS.encode()
    valkey.config_set("maxmemory", 0)
    assert [ledger.reserve(replace(ASK, job_id="local-2")).repeated for _ in range(2)] == [False, True]
    assert counters(valkey) == {TODAY: 2}


def test_a_full_server_pays_back(ledger, full):
    valkey = full
    ledger.reserve(SCOPED)
    valkey.config_set("maxmemory", 1)

    assert ledger.refund("local-1", 0, token=OURS) is True
    assert set(counters(valkey).values()) == {0}


def test_a_server_that_only_reads_grants_nothing(ledger, valkey):
    valkey.replicaof("127.0.0.1", 1)
    try:
        fail(lambda: ledger.reserve(ASK))
    finally:
        valkey.replicaof("NO", "ONE")

    assert valkey.keys() == []


def test_a_server_that_forgot_the_scripts_is_told_them_again(ledger, valkey):
    ledger.reserve(ASK)
    valkey.script_flush()

    assert ledger.refund("local-1", 0, token=OURS) is True


def race(url: str, number: int, barrier: Any, results: Any) -> None:
    """Be one worker process that reserves in each race at the same instant as the others."""
    client = clients.state_client(url, socket_timeout=30)
    ledger, won = Ledger(client), []
    for name, case in RACES.items():
        request = replace(case.request, job_id=f"local-{number}", token=f"b/{number}", attempt=len(won))
        barrier.wait(60)
        answer = ledger.reserve(request)
        won.append((name, isinstance(answer, Granted)))
    client.close()
    results.put(won)


@dataclass(frozen=True)
class Race:
    """A window, how many it has counted, and how many it may."""

    request: ReserveRequest
    key: str
    counted: int
    allowed: int


MANY = 10_000


def _race(year: int, key: str, caps: Caps, *, counted: int = 24, allowed: int = 25, **more: Any) -> Race:
    """Make a race in a year of its own, so that none sees what another has counted."""
    now_ms = int(datetime.fromisoformat(f"{year}-06-15T12:00:00Z").timestamp() * 1000)
    return Race(replace(ASK, caps=caps, now_ms=now_ms, **more), key, counted, allowed)


RACES = {
    "day": _race(2015, "budget:2015-06-15", Caps(day=25)),
    "week": _race(2016, "budget:w:2016-06-13", Caps(day=MANY, week=25)),
    "month": _race(2017, "budget:m:2017-06", Caps(day=MANY, month=25)),
    **{
        f"scope {window}": _race(
            year,
            f"budget:s:{SCOPE}:{mark}",
            Caps(day=MANY),
            scope=ScopeCaps(scope_hash=SCOPE, caps=Caps(**{window: 25})),
        )
        for window, year, mark in (
            ("day", 2018, "2018-06-15"),
            ("week", 2019, "w:2019-06-10"),
            ("month", 2020, "m:2020-06"),
        )
    },
    "held day": _race(2021, "budget:2021-06-15", Caps(day=25), counted=19, allowed=20, hold_percent=80),
    "held week": _race(
        2022, "budget:w:2022-06-13", Caps(day=MANY, week=25), counted=19, allowed=20, hold_percent=80
    ),
    "seven left": _race(2023, "budget:2023-06-15", Caps(day=25), counted=18),
    "none left": _race(2024, "budget:2024-06-15", Caps(day=25), counted=25),
}


def test_of_fifty_processes_exactly_the_allowed_number_starts_in_each_window(valkey, valkey_url):
    for case in RACES.values():
        valkey.set(case.key, case.counted, ex=1000)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    barrier, results = context.Barrier(50), context.SimpleQueue()
    processes = [
        context.Process(target=race, args=(valkey_url, number, barrier, results)) for number in range(50)
    ]
    for process in processes:
        process.start()

    won = Counter(name for _ in processes for name, granted in results.get() if granted)
    for process in processes:
        process.join(60)

    assert dict(won) == {
        name: case.allowed - case.counted for name, case in RACES.items() if case.allowed > case.counted
    }
    assert {name: int(valkey.get(case.key)) for name, case in RACES.items()} == {
        name: case.allowed for name, case in RACES.items()
    }
    assert len(valkey.keys("budget:r:*")) == won.total()


IN_HAND = {"status": "queued", "taker": OURS}


@pytest.mark.parametrize(
    ("job", "granted"),
    [
        pytest.param(IN_HAND, True, id="in hand"),
        pytest.param({}, False, id="gone"),
        pytest.param({"status": "queued"}, False, id="back in the queue"),
        pytest.param({"status": "queued", "taker": THEIRS}, False, id="in somebody else's hand"),
        pytest.param({"status": "started", "taker": OURS}, False, id="started already"),
        pytest.param({"status": "failed"}, False, id="over"),
    ],
)
@pytest.mark.parametrize("known", [pytest.param(True, id="granted before"), pytest.param(False, id="new")])
def test_with_the_jobs_key_only_who_has_the_job_in_hand_is_granted(ledger, valkey, job, granted, known):
    if known:
        ledger.reserve(replace(ASK, token=THEIRS))
    if job:
        valkey.hset("rq:job:local-1", mapping=job)

    answer = ledger.reserve(replace(ASK, now_ms=MIDDAY + 1, job_key="rq:job:local-1"))

    assert isinstance(answer, Granted if granted else NotHeld)
    assert counters(valkey) == ({TODAY: 1} if known or granted else {})
    assert ledger.refund("local-1", 0, token=OURS) is granted


JOB = "rq:job:local-1"
WEEKLY = replace(ASK, caps=Caps(day=25, week=25), now_ms=MIDDAY, token=THEIRS)
NEXT_DAY = replace(WEEKLY, token=OURS, now_ms=MIDDAY + 24 * HOUR, job_key=JOB)
WEEK, TOMORROW = "budget:w:2026-01-05", "budget:2026-01-06"


def over_midnight(ledger: Ledger, valkey: redis.Redis, counted: dict[str, int | str], **job: str) -> None:
    """Leave the grant of a pop that was killed at midday, and count that much besides."""
    valkey.hset(JOB, mapping=IN_HAND | job)
    ledger.reserve(WEEKLY)
    for key, count in counted.items():
        valkey.set(key, count, ex=1000)


def blocked(reason: Reason, window: Window, reserved: int, cap: int) -> Blocked:
    return Blocked(reason=reason, window=window, reserved=reserved, cap=cap)


@pytest.mark.parametrize(
    ("request_", "counted", "answer", "after"),
    [
        pytest.param(
            NEXT_DAY, {TODAY: 3, WEEK: 3}, None, {TODAY: 2, WEEK: 3, TOMORROW: 1}, id="counts today instead"
        ),
        pytest.param(
            replace(NEXT_DAY, caps=Caps(day=1)), {}, None, {TODAY: 0, WEEK: 0, TOMORROW: 1}, id="last place"
        ),
        pytest.param(
            replace(NEXT_DAY, caps=Caps(day=1)),
            {TOMORROW: 1},
            blocked(Reason.OVER_BUDGET, Window.DAY, 1, 1),
            {TODAY: 0, WEEK: 0, TOMORROW: 1},
            id="today is full",
        ),
        pytest.param(
            NEXT_DAY, {WEEK: 25}, None, {TODAY: 0, WEEK: 25, TOMORROW: 1}, id="its own place in the week"
        ),
        pytest.param(
            NEXT_DAY,
            {WEEK: 26},
            blocked(Reason.OVER_BUDGET, Window.WEEK, 25, 25),
            {TODAY: 0, WEEK: 25},
            id="the week is full without it",
        ),
        pytest.param(
            replace(NEXT_DAY, hold_percent=80),
            {WEEK: 21},
            blocked(Reason.SOFT_HOLD, Window.WEEK, 20, 25),
            {TODAY: 0, WEEK: 20},
            id="held without it",
        ),
        pytest.param(
            replace(NEXT_DAY, now_ms=MIDDAY - 13 * HOUR),
            {},
            None,
            {TODAY: 0, WEEK: 0, "budget:2026-01-04": 1, "budget:w:2025-12-29": 1},
            id="the clock was set back",
        ),
    ],
)
def test_what_was_granted_on_another_day_is_paid_back_and_judged_anew(
    ledger, valkey, request_, counted, answer, after
):
    over_midnight(ledger, valkey, counted)

    given = ledger.reserve(request_)

    assert counters(valkey) == after
    assert all(valkey.ttl(key) > 0 for key in after)
    if answer:
        assert given == answer
        assert valkey.keys("budget:r:*") == []
    else:
        assert (given.instant_ms, given.token, given.repeated) == (request_.now_ms, OURS, False)
        assert ledger.reserve(request_).repeated is True
        assert ledger.refund("local-1", 0, token=OURS) is True
        assert all(int(valkey.get(key)) == after[key] - 1 for key in given.counters)


@pytest.mark.parametrize(
    ("request_", "job"),
    [
        pytest.param(replace(NEXT_DAY, now_ms=MIDDAY + 11 * HOUR), {}, id="the same day"),
        pytest.param(replace(NEXT_DAY, job_key=None), {}, id="asked without the job"),
        pytest.param(NEXT_DAY, {"status": "started"}, id="begun"),
        pytest.param(NEXT_DAY, {"taker": THEIRS}, id="in another's hand"),
        pytest.param(replace(NEXT_DAY, now_within_ms=1000), {}, id="with an old reading of the time"),
    ],
)
def test_what_was_granted_stays_counted_where_it_was(ledger, valkey, request_, job):
    over_midnight(ledger, valkey, {}, **job)

    ledger.reserve(request_)

    assert counters(valkey) == {TODAY: 1, WEEK: 1}
    assert ledger.is_reserved("local-1", 0, first_queued_ms=5)


@pytest.mark.parametrize("gone", [0, "many", None])
def test_of_another_days_grant_is_paid_back_what_can_be(ledger, valkey, gone):
    over_midnight(ledger, valkey, {WEEK: 3})
    valkey.delete(TODAY) if gone is None else valkey.set(TODAY, gone, ex=1000)

    assert ledger.reserve(NEXT_DAY).instant_ms == NEXT_DAY.now_ms
    assert valkey.get(TODAY) == (None if gone is None else str(gone).encode())
    assert (valkey.get(WEEK), valkey.get(TOMORROW)) == (b"3", b"1")


def test_another_days_grant_is_left_as_it_is_by_an_error_and_a_full_server_still_takes_it_back(ledger, full):
    valkey = full
    over_midnight(ledger, valkey, {TODAY: 1})
    grant, before = valkey.hgetall("budget:r:local-1:0"), counters(valkey)

    valkey.set(TOMORROW, "many")
    with pytest.raises(redis.exceptions.ResponseError, match="whole number"):
        ledger.reserve(NEXT_DAY)
    valkey.delete(TOMORROW)
    valkey.config_set("maxmemory", 1)
    fail(lambda: ledger.reserve(NEXT_DAY))

    assert (valkey.hgetall("budget:r:local-1:0"), counters(valkey)) == (grant, before)
    assert isinstance(ledger.reserve(replace(NEXT_DAY, caps=Caps(day=0))), Blocked)
    assert counters(valkey) == {TODAY: 0, WEEK: 0}
    assert valkey.keys("budget:r:*") == []


def now_not_at_the_end_of_a_day(valkey: redis.Redis) -> int:
    """Valkey's TIME; in the last second of a day that of the next one, once it has come."""
    left_ms = 24 * HOUR - valkey_now(valkey) % (24 * HOUR)
    if left_ms < 1000:
        time.sleep(left_ms / 1000)
    return valkey_now(valkey)


@pytest.mark.parametrize(
    ("off_ms", "within_ms", "granted"),
    [
        pytest.param(0, 60_000, True, id="true"),
        pytest.param(-30_000, 60_000, True, id="a little off"),
        pytest.param(-30_000, 1_000, False, id="too old"),
        pytest.param(30_000, 1_000, False, id="of the future"),
        pytest.param(-24 * HOUR, 48 * HOUR, False, id="of yesterday, however near"),
    ],
)
def test_a_reading_of_the_time_that_is_not_true_any_more_takes_nothing_and_is_answered_with_a_true_one(
    ledger, valkey, off_ms, within_ms, granted
):
    now = now_not_at_the_end_of_a_day(valkey)
    # In the first half minute of a day only what lies ahead is of the same day.
    is_same_day = instant_of(now).date() == instant_of(now + off_ms).date()
    read_at = now - off_ms if granted and not is_same_day else now + off_ms

    answer = ledger.reserve(replace(ASK, now_ms=read_at, now_within_ms=within_ms))

    if granted:
        assert isinstance(answer, Granted)
    else:
        assert isinstance(answer, Stale)
        assert abs(answer.now_ms - now) < 10_000
        assert counters(valkey) == {}


def test_the_ledger_says_whether_a_start_is_still_counted(ledger):
    before = ledger.is_reserved("local-1", 0, first_queued_ms=5)
    ledger.reserve(ASK)
    reserved = ledger.is_reserved("local-1", 0, first_queued_ms=5)
    of_another_job = ledger.is_reserved("local-1", 0, first_queued_ms=6)
    ledger.refund("local-1", 0, token=OURS)
    refunded = ledger.is_reserved("local-1", 0, first_queued_ms=5)

    assert (before, reserved, of_another_job, refunded) == (False, True, False, False)


@pytest.fixture
def outage():
    """A server that the test may break, and a ledger whose client soon gives up on it."""
    with own_server() as server, clients.state_client(server.url, socket_timeout=0.2) as client:
        yield server, client, Ledger(client)


def fail(step: Any) -> None:
    with pytest.raises(VALKEY_FAULTS):
        step()


def test_a_server_that_died_grants_nothing_and_a_repeat_counts_once(outage):
    server, client, ledger = outage
    ledger.reserve(SCOPED)
    other = replace(SCOPED, job_id="local-2")

    server.kill()
    fail(lambda: ledger.reserve(other))
    fail(lambda: ledger.refund("local-1", 0, token=OURS))
    server.start()

    assert set(counters(client).values()) == {1}
    assert [ledger.reserve(other).repeated for _ in range(2)] == [False, True]
    assert set(counters(client).values()) == {2}
    assert [ledger.refund("local-1", 0, token=OURS) for _ in range(2)] == [True, False]
    assert set(counters(client).values()) == {1}


def test_what_a_frozen_server_does_when_it_wakes_and_the_repeat_of_it_count_once(outage):
    server, client, ledger = outage
    ledger.reserve(SCOPED)
    other = replace(SCOPED, job_id="local-2")

    server.freeze()
    fail(lambda: ledger.reserve(other))
    fail(lambda: ledger.refund("local-1", 0, token=OURS))
    server.thaw()
    # Whether the late calls were applied is not ours to know.
    client.ping()

    assert isinstance(ledger.reserve(other), Granted)
    ledger.refund("local-1", 0, token=OURS)
    assert ledger.refund("local-1", 0, token=OURS) is False
    assert set(counters(client).values()) == {1}
    assert client.keys("budget:r:*") == [b"budget:r:local-2:0"]
    assert all(client.ttl(key) > 0 for key in client.scan_iter())
