"""Whose a one-shot is: two jobs at once, jobs that vanish, hosts with files of their own, rubbish."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dispatch.queue import keys
from dispatch.triggers.claims import LIFETIME_MS, Claims, forget, forget_recorded, not_disarmed
from runs.oneshot import OneShot
from tests.dispatch.triggers.one_shots import KEY, ONCE, claimed, standing


@pytest.fixture
def claims(valkey) -> Claims:
    return Claims(valkey, "aaaa")


def test_the_first_job_has_it_and_has_it_again_for_its_retry(claims, valkey):
    assert claimed(claims, "gh-1") == "gh-1"
    assert claimed(claims, "gh-1") == "gh-1"

    assert valkey.hgetall(KEY) == {b"job": b"gh-1"}
    assert LIFETIME_MS - 10_000 < valkey.pttl(KEY) <= LIFETIME_MS


@pytest.mark.parametrize("status", ["queued", "scheduled", "started", "finished", "failed"])
def test_another_job_does_not_get_it_as_long_as_that_one_is_known(claims, valkey, status):
    claimed(claims, "gh-1")
    standing(valkey, "gh-1", status)

    assert claimed(claims, "gh-2") == "gh-1"
    assert claimed(Claims(valkey, "bbbb"), "gh-2") == "gh-1"


def test_what_was_cancelled_before_it_ran_leaves_it_to_the_next(claims):
    claimed(claims, "gh-1")

    assert claimed(claims, "gh-2") == "gh-2"


@pytest.mark.parametrize(
    ("status", "noted_by", "is_armed", "holder"),
    [
        pytest.param("finished", "aaaa", True, "gh-2", id="armed again by hand"),
        pytest.param("failed", "aaaa", True, "gh-2", id="armed again after a failure"),
        pytest.param("finished", "aaaa", False, "gh-1", id="disarmed after we had looked"),
        pytest.param("finished", "bbbb", True, "gh-1", id="this host's file never said so"),
        pytest.param("scheduled", "aaaa", True, "gh-1", id="the job will be tried again"),
    ],
)
def test_who_has_noted_it_may_arm_it_again(claims, valkey, status, noted_by, is_armed, holder):
    claimed(claims, "gh-1")
    standing(valkey, "gh-1", status)
    Claims(valkey, noted_by).note(ONCE, "gh-1")

    assert claimed(claims, "gh-2", is_armed=is_armed) == holder
    if holder == "gh-2":
        assert valkey.hgetall(KEY) == {b"job": b"gh-2"}


def test_the_file_is_looked_at_after_the_claim_said_that_it_was_disarmed(claims, valkey):
    """Else two looks, before and after another worker's disarm, would start a second job."""
    claimed(claims, "gh-1")
    standing(valkey, "gh-1", "finished")
    asked: list[Any] = []

    def is_armed() -> bool:
        asked.append(valkey.hget(KEY, "spent:aaaa"))
        return True

    assert claims.claim(ONCE, "gh-2", is_armed=is_armed) == "gh-1"
    assert asked == []
    claims.note(ONCE, "gh-1")
    assert claims.claim(ONCE, "gh-2", is_armed=is_armed) == "gh-2"
    assert asked == [b"gh-1"]


def test_a_note_is_of_the_job_that_has_it(claims, valkey):
    claims.note(ONCE, "gh-1")
    assert valkey.exists(KEY) == 0
    claimed(claims, "gh-1")
    claims.note(ONCE, "gh-2")

    assert valkey.hgetall(KEY) == {b"job": b"gh-1"}


@pytest.mark.parametrize(
    ("holder", "recorded", "spender"),
    [
        (None, None, "gh-2"),
        ("gh-2", None, "gh-2"),
        ("gh-1", "gh-1", "gh-1"),
        # It waits, runs, was cancelled, or its host was killed before it wrote the record.
        ("gh-1", None, None),
        ("gh-1", "gh-0", None),
    ],
)
def test_a_record_spends_it_for_who_has_it_if_that_one_has_a_record_too(claims, holder, recorded, spender):
    if holder:
        claimed(claims, holder)
    if recorded:
        claims.record(ONCE, recorded)

    assert claims.spender(ONCE, "gh-2") == spender


def test_who_arms_it_by_the_command_begins_anew(claims, valkey):
    claimed(claims, "gh-1")
    standing(valkey, "gh-1", "finished")
    forget(valkey, ONCE)

    assert claimed(claims, "gh-2") == "gh-2"


@pytest.mark.parametrize("field", [b"", b"x" * 10_000, b"\xff\xfe", b"gh-1\n\x1b[2J", b"_2a"])
def test_rubbish_is_nobody(claims, valkey, field):
    valkey.hset(KEY, "job", field)

    assert claims.spender(ONCE, "gh-2") in {"gh-2", None}
    assert claimed(claims, "gh-2") == "gh-2"


def test_keys_of_another_type_are_nobody(claims, valkey):
    valkey.rpush(KEY, "x")
    assert claims.spender(ONCE, "gh-1") == "gh-1"
    claims.note(ONCE, "gh-1")
    assert claimed(claims, "gh-1") == "gh-1"
    valkey.rpush(keys.job(b"gh-1"), "x")

    assert claimed(claims, "gh-2") == "gh-2"


def test_of_fifty_jobs_that_race_one_gets_it(valkey):
    ids = [f"gh-{number}" for number in range(50)]
    for job_id in ids:
        standing(valkey, job_id, "queued")

    with ThreadPoolExecutor(8) as pool:
        holders = set(pool.map(lambda job_id: claimed(Claims(valkey, job_id), job_id), ids))

    assert len(holders) == 1


def test_only_whose_job_has_a_record_is_forgotten(valkey):
    claims = Claims(valkey, "aaaa")
    assert not forget_recorded(valkey, ONCE)
    claimed(claims, "gh-9")
    assert not forget_recorded(valkey, ONCE)
    claims.record(ONCE, "gh-9")

    assert forget_recorded(valkey, ONCE)
    assert not valkey.exists(KEY)
    valkey.set(KEY, "rubbish")
    assert not forget_recorded(valkey, ONCE)


def test_what_a_host_could_not_disarm_is_told_of_that_host(valkey):
    claims, other = Claims(valkey, "aaaa"), OneShot(index=1, number=7, slot=ONCE.slot)
    valkey.set(f"once:1:7:{ONCE.slot}", "rubbish")
    claimed(claims, "gh-9")
    claims.note_failed(ONCE, "gh-8")
    assert not_disarmed(valkey, [ONCE, other], hosts=["bbbb", "aaaa"]) == {}
    claims.note_failed(ONCE, "gh-9")

    assert not_disarmed(valkey, [ONCE, other], hosts=["bbbb", "aaaa"]) == {ONCE: "gh-9"}
    assert not_disarmed(valkey, [ONCE, other], hosts=["bbbb"]) == {}
    assert not_disarmed(valkey, [], hosts=["bbbb", "aaaa"]) == {}
    claims.note(ONCE, "gh-9")
    assert not_disarmed(valkey, [ONCE, other], hosts=["bbbb", "aaaa"]) == {}
