"""The disarm after a record: which entry, whose name, how hard it tries, what it says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dispatch.triggers.claims import Claims
from dispatch.triggers.disarm import Disarmer, look
from dispatch.triggers.one_shots import Armed, Changed, Spent
from runs.outcome import Outcome, Reason
from tests.dispatch.triggers.one_shots import (
    KEY,
    ONCE,
    SPENT_BY,
    as_it_lies,
    claimed,
    cron,
    entries_of,
    entry,
    standing,
    written,
)
from tests.harness.records import NOON, a_record

RECORD = a_record(job_id="gh-9", once=ONCE, ended_at=NOON)
NAMED = {"jobId": "gh-9", "triggerIndex": 0}


@pytest.fixture
def path(tmp_path) -> Path:
    return written(tmp_path / "triggers.json", entry(), cron("a"))


def disarmer(
    path: Path | None, valkey: redis.Redis, pauses: list[int] | None = None, **more: Any
) -> Disarmer:
    paused = pauses if pauses is not None else []
    return Disarmer(path, Claims(valkey, "aaaa"), pause=lambda: paused.append(1), **more)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"outcome": Outcome.FAILED, "final": False},
        {"outcome": Outcome.POLICY, "reason": Reason.OVER_BUDGET.value},
        {"outcome": Outcome.FAILED, "reason": Reason.STALLED.value},
    ],
)
def test_every_record_of_a_one_shots_job_disarms_its_entry(path, valkey, events, fields):
    claimed(Claims(valkey, "aaaa"), "gh-9")

    disarmer(path, valkey).of_record(replace(RECORD, **fields))

    assert entries_of(path) == [entry(disarmed=SPENT_BY), cron("a")]
    assert events() == [{"event": "trigger_disarmed", **NAMED}]
    assert valkey.hget(KEY, "spent:aaaa") == b"gh-9"


def test_a_record_of_any_other_job_disarms_nothing(path, valkey, events):
    before = as_it_lies(path)

    disarmer(path, valkey).of_record(replace(RECORD, once=None))

    assert as_it_lies(path) == before
    assert events() == []


def test_a_second_record_finds_it_done(path, valkey, events):
    for record in (replace(RECORD, final=False), RECORD):
        disarmer(path, valkey).of_record(record)

    assert [said["event"] for said in events()] == ["trigger_disarmed", "trigger_already_disarmed"]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_refused_rival_disarms_in_the_name_of_who_spent_it_once_that_one_has_a_record(
    path, valkey, tmp_path, is_recorded
):
    """That it has ended is not enough: its host may have been killed before it wrote one."""
    claimed(Claims(valkey, "bbbb"), "gh-1")
    standing(valkey, "gh-1", "finished")
    if is_recorded:
        elsewhere = written(tmp_path / "elsewhere.json", entry())
        Disarmer(elsewhere, Claims(valkey, "bbbb")).of_record(replace(RECORD, job_id="gh-1"))
    refused = replace(RECORD, outcome=Outcome.POLICY, reason=Reason.ONCE_ALREADY_SPENT.value)

    disarmer(path, valkey).of_record(refused)

    assert look(path, ONCE) == (Spent("gh-1") if is_recorded else Armed())


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        pytest.param([], "no-entry", id="gone"),
        pytest.param([cron("a"), entry()], "not-one-shot", id="moved"),
        pytest.param([entry(number=8)], "another-number", id="another number"),
        pytest.param([entry(flow="other")], "another-flow", id="another flow"),
        pytest.param([entry(once=False)], "not-one-shot", id="not once any more"),
        pytest.param([entry(), {"on": {}}], "file-invalid", id="a file that does not load"),
    ],
)
def test_what_is_not_the_armed_entry_any_more_is_left_alone(path, valkey, events, entries, reason):
    before = written(path, *entries).read_bytes()

    disarmer(path, valkey).of_record(RECORD)

    assert path.read_bytes() == before
    assert events() == [{"event": "trigger_disarm_failed", **NAMED, "reason": reason}]
    assert not valkey.hexists(KEY, "spent:aaaa")


def test_what_cannot_be_done_is_said_and_never_raised(path, valkey, tmp_path, events):
    lock, pauses = path.with_name("triggers.json.lock"), []
    lock.touch()
    disarmer(path, valkey, pauses).of_record(RECORD)
    lock.unlink()
    disarmer(None, valkey).of_record(RECORD)
    disarmer(tmp_path / "missing.json", valkey).of_record(RECORD)
    disarmer(path, valkey, reached=_raising(OSError(28, "No space left"))).of_record(RECORD)
    disarmer(path, valkey, reached=_raising(RuntimeError("our own bug"))).of_record(RECORD)

    assert len(pauses) == 4
    assert [(said["event"], said.get("reason")) for said in events()] == [
        ("trigger_disarm_failed", "locked"),
        ("trigger_disarm_unavailable", None),
        ("trigger_disarm_failed", "file-invalid"),
        ("trigger_disarm_failed", "not-writable"),
        ("trigger_disarm_failed", "RuntimeError"),
    ]
    assert not (tmp_path / "missing.json").exists()
    assert list(tmp_path.iterdir()) == [path]
    assert look(path, ONCE) == Armed()


def test_what_failed_is_tried_again_until_the_file_says_it(path, valkey, events):
    lock, now = path.with_name("triggers.json.lock"), [0.0]
    claimed(Claims(valkey, "aaaa"), "gh-9")
    lock.touch()
    disarmer(path, valkey).of_record(RECORD)
    assert look(path, ONCE) == Armed()

    # After a restart: nothing but the claim knows of it.
    mine = disarmer(path, valkey, clock=lambda: now[0])
    for _ in range(3):
        mine.catch_up()
        now[0] += 5
    assert look(path, ONCE) == Armed()
    lock.unlink()
    mine.catch_up()

    assert look(path, ONCE) == Spent("gh-9")
    assert [said["event"] for said in events()] == [
        *["trigger_disarm_failed"] * 2,
        "trigger_disarmed",
    ]
    # Armed again by hand: what has been done once is not done again.
    written(path, entry())
    now[0] += 5
    mine.catch_up()
    assert look(path, ONCE) == Armed()


@pytest.mark.parametrize("mended", [[entry(), cron("a")], [entry(disarmed=SPENT_BY)], [cron("a"), entry()]])
def test_it_is_tried_again_when_the_file_has_been_changed(path, valkey, mended):
    now = [0.0]
    claimed(Claims(valkey, "aaaa"), "gh-9")
    path.write_text("{")
    mine = disarmer(path, valkey, clock=lambda: now[0])
    mine.of_record(RECORD)
    mine.catch_up()
    written(path, *mended)
    now[0] += 5
    mine.catch_up()

    assert look(path, ONCE) != Armed()
    before = valkey.info("stats")["total_commands_processed"]
    for _ in range(5):
        now[0] += 5
        mine.catch_up()
    # INFO itself is counted; one more look at the file that was written here.
    assert valkey.info("stats")["total_commands_processed"] - before <= 2


@pytest.mark.parametrize("by", ["hand", "a worker that was killed before it noted that"])
def test_what_the_file_says_after_all_is_not_done_again_once_it_is_armed_again(path, valkey, by):
    lock = path.with_name("triggers.json.lock")
    claimed(Claims(valkey, "aaaa"), "gh-9")
    path.write_text("{")
    disarmer(path, valkey).of_record(RECORD)
    if by == "hand":
        lock.touch()
        written(path, entry(disarmed=SPENT_BY))
    else:
        written(path, entry())
        disarmer(path, valkey).catch_up()
        valkey.hdel(KEY, "spent:aaaa")
    disarmer(path, valkey).catch_up()
    lock.unlink(missing_ok=True)

    written(path, entry())
    disarmer(path, valkey).catch_up()

    assert look(path, ONCE) == Armed()


@pytest.mark.parametrize("content", [None, "{", '{"triggers": 1}'])
def test_where_nothing_can_be_caught_up_nothing_is_said(tmp_path, valkey, events, content):
    path = tmp_path / "t.json"
    if content:
        path.write_text(content)

    disarmer(path, valkey).catch_up()
    disarmer(None, valkey).catch_up()

    assert events() == []


@pytest.mark.parametrize("in_the_way", ["locked", "invalid"])
def test_many_records_do_not_wait_for_the_same_thing_again_and_again(path, valkey, in_the_way):
    lock, now, pauses = path.with_name("triggers.json.lock"), [0.0], []
    content = path.read_bytes()
    lock.touch() if in_the_way == "locked" else path.write_text("{")
    mine = disarmer(path, valkey, pauses, clock=lambda: now[0])

    for number in range(5):
        mine.of_record(replace(RECORD, job_id=f"gh-{number}"))
    assert len(pauses) == 4
    now[0] += 30
    mine.of_record(RECORD)
    assert len(pauses) == 8
    # One that succeeds shows that patience is worth something again.
    lock.unlink(missing_ok=True)
    path.write_bytes(content)
    mine.of_record(RECORD)
    lock.touch()
    mine.of_record(RECORD)
    assert len(pauses) == 12


def _raising(error: Exception) -> Any:
    def reached(point: str) -> None:
        raise error

    return reached


def test_without_valkey_the_record_is_met_again(path, valkey):
    away = redis.Redis(unix_socket_path="/nonexistent", retry=Retry(NoBackoff(), 0))

    with pytest.raises(redis.ConnectionError):
        Disarmer(path, Claims(away, "aaaa")).of_record(RECORD)

    assert look(path, ONCE) == Armed()


def test_pauses_are_of_100_to_300_ms(monkeypatch, path, valkey):
    slept: list[float] = []
    monkeypatch.setattr("dispatch.triggers.disarm.time.sleep", slept.append)
    path.with_name("triggers.json.lock").touch()

    Disarmer(path, Claims(valkey, "aaaa")).of_record(RECORD)

    assert len(slept) == 4
    assert all(0.1 <= one <= 0.3 for one in slept)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, Changed("unreadable")),
        (b"{", Changed("unreadable")),
        (b'{"triggers": [], "triggers": []}', Changed("unreadable")),
        (b'{"triggers": []}', Changed("no-entry")),
        (json.dumps({"triggers": [entry(), 1]}).encode(), Armed()),
    ],
)
def test_for_the_gate_a_file_that_cannot_be_read_says_nothing(tmp_path, content, found):
    path = tmp_path / "t.json"
    if content is not None:
        path.write_bytes(content)

    assert look(path, ONCE) == found
    assert look(None, ONCE) == Changed("no-file")
