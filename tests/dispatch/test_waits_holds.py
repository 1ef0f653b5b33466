from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis

from dispatch.waits.holds import HeldJob, Hold, Holds, Waiter, lifetime_ms
from dispatch.waits.slots import CheckSlots, check_limit

NOW = 1_785_585_600_000
MINUTE, HOUR = 60_000, 3_600_000
IDENTITY = "acme/web#5:triage#2"
JOB = Waiter(job_id="gh-1", target="acme/web#5", label="jira", identity=IDENTITY)
HOLD, CLAIM, DONE = "wait:job:gh-1", f"wait:key:{IDENTITY}", f"wait:done:{IDENTITY}"


@pytest.fixture
def holds(valkey: redis.Redis) -> Iterator[Holds]:
    yield Holds(valkey)
    immortal = [key for key in valkey.keys("wait:*") if valkey.ttl(key) == -1]
    assert immortal == []


@pytest.fixture
def full(valkey: redis.Redis) -> Iterator[redis.Redis]:
    """The server, which has memory again afterwards."""
    yield valkey
    valkey.config_set("maxmemory", 0)


def record(holds: Holds, waiter: Waiter = JOB, *, at: int = NOW, sleep: int = MINUTE) -> Hold:
    return holds.record(waiter, now_ms=at, until_ms=at + sleep)


def is_near(ttl_ms: int, expected_ms: int) -> bool:
    return expected_ms - 5_000 < ttl_ms <= expected_ms


@pytest.mark.parametrize(
    ("sleep_ms", "expected_ms"),
    [
        pytest.param(-2 * HOUR, 5 * MINUTE, id="long past"),
        pytest.param(0, HOUR, id="now"),
        pytest.param(MINUTE, HOUR + MINUTE, id="a minute"),
        pytest.param(30 * 24 * HOUR, (30 * 24 + 1) * HOUR, id="a month"),
    ],
)
def test_a_hold_outlives_its_sleep_by_an_hour(sleep_ms, expected_ms):
    assert lifetime_ms(NOW, NOW + sleep_ms) == expected_ms


def test_the_first_record_starts_the_clock_and_no_later_one_does(holds, valkey):
    first = record(holds)
    again = record(holds, at=NOW + HOUR)

    assert first == again == Hold(since_ms=NOW, checks=0, faults=0, throttles=0)
    assert again.held_ms(NOW + HOUR) == HOUR
    assert valkey.hgetall(HOLD) == {
        b"since": str(NOW).encode(),
        b"target": b"acme/web#5",
        b"label": b"jira",
        b"dedupId": IDENTITY.encode(),
    }
    assert is_near(valkey.pttl(HOLD), HOUR + MINUTE)


def test_who_was_never_held_has_no_time_whatever_was_counted(holds):
    counted = holds.count_check("gh-1", token="b/1", fault=True)

    assert counted == holds.read("gh-1") == Hold(since_ms=None, checks=1, faults=1, throttles=0)
    assert counted.held_ms(NOW) is None
    assert holds.held() == []


@pytest.mark.parametrize("junk", ["", "soon", "1e3", "-5", "0x10"])
def test_a_clock_that_cannot_be_read_is_none_and_starts_anew(holds, valkey, junk):
    valkey.hset(HOLD, mapping={"since": junk, "checks": junk, "faults": junk})

    before = holds.read("gh-1")
    after = (holds.count_check("gh-1", token="b/1", fault=True), record(holds))

    assert before == Hold(since_ms=None, checks=0, faults=0, throttles=0)
    assert after[1] == Hold(since_ms=NOW, checks=1, faults=1, throttles=0)


def test_no_write_shortens_a_lifetime(holds, valkey):
    holds.claim("gh-1", IDENTITY, now_ms=NOW, until_ms=NOW + 40 * HOUR)
    record(holds, sleep=40 * HOUR)

    record(holds)
    holds.count_check("gh-1", token="b/1", fault=False)
    holds.claim("gh-1", IDENTITY, now_ms=NOW, until_ms=NOW)

    for key in (HOLD, CLAIM, "wait:held"):
        assert is_near(valkey.pttl(key), 41 * HOUR), key


def test_counters_are_kept_for_25_hours_with_the_index_that_leads_to_them(holds, valkey):
    record(holds)
    holds.count_check("gh-1", token="b/1", fault=False)

    assert is_near(valkey.pttl(HOLD), 25 * HOUR)
    assert is_near(valkey.pttl("wait:held"), 25 * HOUR)


def test_a_hold_keeps_its_own_claim_alive_and_nobody_elses(holds, valkey):
    holds.claim("gh-1", IDENTITY, now_ms=NOW, until_ms=NOW)
    record(holds, sleep=10 * HOUR)
    ours = valkey.pttl(CLAIM)
    valkey.set(CLAIM, "gh-2", px=MINUTE)
    record(holds, sleep=20 * HOUR)

    assert is_near(ours, 11 * HOUR)
    assert is_near(valkey.pttl(CLAIM), MINUTE)


@pytest.mark.parametrize(
    ("rounds", "checks", "faults"),
    [
        pytest.param([("b/1", True), ("b/2", True)], 2, 2, id="in a row"),
        pytest.param([("b/1", True), ("b/2", False), ("b/3", True)], 3, 1, id="the row ends"),
        pytest.param([("b/1", True), ("b/1", True)], 1, 1, id="the same pop again"),
        pytest.param([("b/1", True), ("b/2", True), ("b/2", False)], 2, 0, id="it says no fault after all"),
        pytest.param([("b/1", True), ("b/2", False), ("b/2", True)], 2, 2, id="it says a fault after all"),
    ],
)
def test_a_pop_counts_its_checks_once_and_what_it_says_last_is_what_counts(holds, rounds, checks, faults):
    for token, fault in rounds:
        counted = holds.count_check("gh-1", token=token, fault=fault)

    assert (counted.checks, counted.faults) == (checks, faults)


def test_denied_slots_are_counted_once_a_pop_until_one_is_got(holds, valkey):
    def deny(token: str) -> int:
        return holds.count_denial(JOB, token=token, now_ms=NOW, until_ms=NOW + MINUTE).throttles

    in_a_row = [deny("b/1"), deny("b/1"), deny("b/2")]
    holds.forget_denials("gh-1")
    after = deny("b/2")

    assert (in_a_row, after) == ([1, 1, 2], 1)
    assert holds.read("gh-1").since_ms == NOW
    assert is_near(valkey.pttl(HOLD), 25 * HOUR)


@pytest.mark.parametrize(
    ("holder", "displacing", "expected"),
    [
        pytest.param(None, None, "gh-1", id="free"),
        pytest.param("gh-1", None, "gh-1", id="ours"),
        pytest.param("gh-2", None, "gh-2", id="another's"),
        pytest.param("gh-2", "gh-2", "gh-1", id="taken over"),
        pytest.param("gh-3", "gh-2", "gh-3", id="another one came before us"),
        pytest.param(None, "gh-2", "gh-1", id="expired meanwhile"),
    ],
)
def test_a_target_has_one_holder(holds, valkey, holder, displacing, expected):
    if holder:
        valkey.set(CLAIM, holder, px=MINUTE)

    answers = [
        holds.claim("gh-1", IDENTITY, now_ms=NOW, until_ms=NOW, displacing=displacing) for _ in range(2)
    ]

    assert answers == [expected, expected]
    assert valkey.get(CLAIM) == expected.encode()
    assert is_near(valkey.pttl(CLAIM), HOUR if expected == "gh-1" else MINUTE)


def test_of_many_who_claim_at_once_one_wins(holds):
    barrier, answers = threading.Barrier(20), []

    def work(job_id: str) -> None:
        barrier.wait(10)
        answers.append((job_id, holds.claim(job_id, IDENTITY, now_ms=NOW, until_ms=NOW)))

    threads = [threading.Thread(target=work, args=(f"gh-{number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(answers) == 20
    assert len({holder for _, holder in answers}) == 1
    assert sum(job_id == holder for job_id, holder in answers) == 1


def test_release_forgets_the_hold_and_only_its_own_claim(holds, valkey):
    record(holds)
    valkey.set(CLAIM, "gh-2", px=MINUTE)
    holds.release("gh-1", IDENTITY)
    others = valkey.keys()
    valkey.set(CLAIM, "gh-1", px=MINUTE)
    holds.release("gh-1", IDENTITY)
    holds.release("gh-1", None)

    assert others == [CLAIM.encode()]
    assert valkey.keys() == []


def test_a_hold_that_is_met_marks_its_target_and_leaves_nothing_else(holds, valkey):
    holds.claim("gh-1", IDENTITY, now_ms=NOW, until_ms=NOW)
    record(holds)

    assert holds.clear("gh-1", IDENTITY) == NOW
    assert valkey.keys() == [DONE.encode()]
    assert holds.satisfied_by(IDENTITY) == "gh-1"
    assert is_near(valkey.pttl(DONE), 15 * MINUTE)


def test_who_was_never_held_marks_nothing(holds, valkey):
    holds.claim("gh-1", IDENTITY, now_ms=NOW, until_ms=NOW)
    holds.count_check("gh-1", token="b/1", fault=False)

    assert holds.clear("gh-1", IDENTITY) is None
    assert valkey.keys() == []


def test_without_an_identity_there_is_neither_claim_nor_mark(holds, valkey):
    record(holds, Waiter(job_id="gh-1", target="gh-1", label="jira", identity=None))
    held = sorted(valkey.keys())

    assert held == [b"wait:held", HOLD.encode()]
    assert holds.clear("gh-1", None) == NOW
    assert valkey.keys() == []


def test_held_jobs_are_listed_longest_first_and_what_is_gone_leaves_the_index(holds, valkey):
    for number, at in ((1, NOW), (2, NOW - HOUR), (3, NOW)):
        record(holds, Waiter(job_id=f"gh-{number}", target=f"a#{number}", label="ci", identity=None), at=at)
    holds.count_check("gh-2", token="b/1", fault=True)
    valkey.delete("wait:job:gh-3")
    valkey.set("wait:job:no-hash", "x", px=MINUTE)
    valkey.hset("wait:job:no-clock", "checks", 1)
    valkey.pexpire("wait:job:no-clock", MINUTE)
    valkey.sadd("wait:held", "no-hash", "no-clock")

    assert holds.held() == [
        HeldJob(
            job_id="gh-2", since_ms=NOW - HOUR, target="a#2", label="ci", checks=1, faults=1, throttles=0
        ),
        HeldJob(job_id="gh-1", since_ms=NOW, target="a#1", label="ci", checks=0, faults=0, throttles=0),
    ]
    assert valkey.smembers("wait:held") == {b"gh-1", b"gh-2"}


def test_a_full_server_changes_nothing_and_lets_a_hold_go(holds, full):
    record(holds)
    before = full.hgetall(HOLD)
    full.config_set("maxmemory", 1)

    for refused in (
        lambda: record(holds),
        lambda: holds.count_check("gh-1", token="b/1", fault=False),
        lambda: holds.count_denial(JOB, token="b/1", now_ms=NOW, until_ms=NOW),
        lambda: holds.claim("gh-1", IDENTITY, now_ms=NOW, until_ms=NOW),
        lambda: holds.clear("gh-1", IDENTITY),
    ):
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            refused()
    assert full.hgetall(HOLD) == before

    holds.release("gh-1", IDENTITY)
    assert full.keys() == []


@pytest.mark.parametrize(
    ("slots", "concurrency", "limit"),
    [(1, 1, 1), (1, 8, 1), (4, 1, 1), (4, 2, 1), (4, 3, 2), (4, 5, 4), (4, 50, 4), (4, 0, 1)],
)
def test_a_check_never_takes_the_last_slot_of_paid_work(slots, concurrency, limit):
    assert check_limit(slots, concurrency) == limit


def test_slots_follow_a_limit_that_changes():
    concurrency = 3
    slots = CheckSlots(lambda: check_limit(4, concurrency))
    first = [slots.try_take() for _ in range(3)]
    concurrency = 2
    slots.give_back()
    lower = slots.try_take()
    concurrency = 5

    assert (first, lower, slots.try_take()) == ([True, True, False], False, True)
    assert (slots.used, slots.limit) == (2, 4)


def test_a_slot_given_back_twice_is_refused():
    slots = CheckSlots(lambda: 1)
    slots.try_take()
    slots.give_back()

    with pytest.raises(RuntimeError, match="twice"):
        slots.give_back()
