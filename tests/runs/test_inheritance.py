from __future__ import annotations

import itertools
import json
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts.keys import HOSTS_KNOWN, pending_records
from runs.files import RecordFiles
from runs.inheritance import take_over
from runs.models import Run
from runs.record import order
from runs.recorder import Backoff, Recorder
from tests.harness.records import a_record
from tests.runs.test_files import no_byte_can_be_written

OURS, OLD, OTHER = "0" * 16, "a" * 16, "b" * 16
HOUR_MS = 3_600_000


def known(
    valkey: redis.Redis, host_id: str, *, silent_ms: int = HOUR_MS + 1000, name: object = "mac"
) -> None:
    seconds, _ = valkey.time()
    valkey.hset(HOSTS_KNOWN, host_id, json.dumps({"name": name, "beat": seconds * 1000 - silent_ms}))


def pending(valkey: redis.Redis, host_id: str) -> list[bytes]:
    return valkey.lrange(pending_records(host_id), 0, -1)


def heir(valkey: redis.Redis, **bounds: int) -> int:
    return take_over(valkey, OURS, vanished_ms=HOUR_MS, **bounds)


def test_what_vanished_hosts_left_comes_behind_our_own_in_order(valkey, events):
    known(valkey, OLD)
    known(valkey, OTHER, name="pi-jobs@x\n")
    valkey.rpush(pending_records(OURS), "own")
    valkey.rpush(pending_records(OLD), *"abc")
    valkey.rpush(pending_records(OTHER), *"xy")

    assert heir(valkey) == 5
    assert heir(valkey) == 0

    moved = pending(valkey, OURS)
    assert moved[0] == b"own"
    assert [one for one in moved if one in b"abc"] == [b"a", b"b", b"c"]
    assert [one for one in moved if one in b"xy"] == [b"x", b"y"]
    told = sorted(events(), key=lambda one: one["hostId"])
    assert told == [
        {"event": "pending_records_taken_over", "hostId": OLD, "worker": "mac", "count": 3},
        {"event": "pending_records_taken_over", "hostId": OTHER, "count": 2},
    ], "a name that is none is not repeated"


@pytest.mark.parametrize(
    "silent_ms", [HOUR_MS - 1000, 0, -HOUR_MS], ids=["not an hour", "beating", "from the future"]
)
def test_a_host_that_may_come_back_keeps_its_list(silent_ms, valkey):
    known(valkey, OLD, silent_ms=silent_ms)
    valkey.rpush(pending_records(OLD), "a")

    assert heir(valkey) == 0
    assert pending(valkey, OLD) == [b"a"]


@pytest.mark.parametrize(
    ("host_id", "value"),
    [
        (OURS, '{"name": "me", "beat": 1}'),
        ("pi-jobs", '{"name": "x", "beat": 1}'),
        (OLD[:8], '{"name": "x", "beat": 1}'),
        (OLD.upper(), '{"name": "x", "beat": 1}'),
        (f"{OLD}\n", '{"name": "x", "beat": 1}'),
        (OLD, "{"),
        (OLD, "[1]"),
        (OLD, "7"),
        (OLD, '{"name": "x"}'),
        (OLD, '{"name": "x", "beat": "1"}'),
    ],
)
def test_what_is_no_known_host_is_nobodys_list(host_id, value, valkey):
    valkey.hset(HOSTS_KNOWN, host_id, value)
    valkey.rpush(pending_records(host_id), "a")
    valkey.rpush(pending_records(OTHER), "of a host that nobody knows")

    assert heir(valkey) == 0
    assert valkey.llen(pending_records(host_id)) == valkey.llen(pending_records(OTHER)) == 1


def test_keys_of_another_type_cost_nothing_and_lose_nothing(valkey):
    known(valkey, OLD)
    known(valkey, OTHER, name=[1])
    valkey.set(pending_records(OLD), "x")
    valkey.rpush(pending_records(OTHER), "a")
    assert heir(valkey) == 1

    valkey.rpush(pending_records(OTHER), "b")
    valkey.delete(pending_records(OURS))
    valkey.set(pending_records(OURS), "x")
    with pytest.raises(redis.exceptions.ResponseError):
        heir(valkey)
    assert pending(valkey, OTHER) == [b"b"]

    valkey.delete(HOSTS_KNOWN)
    assert heir(valkey) == 0, "no host is known"


def test_a_step_is_bounded(valkey):
    known(valkey, OLD)
    valkey.rpush(pending_records(OLD), *(f"{number}" * 10 for number in range(5)))

    assert [heir(valkey, most=2), heir(valkey, most=9, size=15), heir(valkey), heir(valkey)] == [2, 2, 1, 0]
    assert pending(valkey, OURS) == [str(number).encode() * 10 for number in range(5)]


class Killed(BaseException):
    """The process ends at this very line."""


STEPS = st.sampled_from(
    ["push", "push", "old", "full disk", "killed", "taken within", "taken one", "taken", "heir"]
)


def test_an_old_host_that_drains_while_another_takes_over_loses_nothing(valkey, db):
    """Whatever meets, also a kill at any line of the old host: each job's newest record is in a file."""

    @settings(max_examples=40, database=None)
    @given(st.lists(STEPS, min_size=4, max_size=14), st.sampled_from(["filed", "written", "removed"]))
    def meet(steps, line):
        valkey.flushall()
        Run.objects.all().delete()
        known(valkey, OLD)
        with tempfile.TemporaryDirectory() as folder:
            meeting = Meeting(valkey, Path(folder), line)
            for now, step in enumerate(steps):
                meeting.take(step, now * 10.0)
            meeting.finish()

    meet()


class Meeting:
    def __init__(self, valkey: redis.Redis, folder: Path, line: str) -> None:
        self.valkey = valkey
        self.files = [RecordFiles(folder / name) for name in ("old", "heir")]
        self.line = line
        self.at_line = None
        self.numbers = itertools.count()
        self.pushed = []
        self.old = self.recorder(OLD, self.files[0])
        self.heir = self.recorder(OURS, self.files[1])

    def recorder(self, host_id, files):
        return Recorder(
            self.valkey, host_id, files, batch=2, backoff=Backoff(first=1, longest=2), reached=self.reached
        )

    def reached(self, point):
        if point == self.line and self.at_line is not None:
            at_line, self.at_line = self.at_line, None
            at_line()

    def take(self, step, now):
        if step == "push":
            # Two jobs with ever newer attempts: what is older must not win anywhere.
            number = next(self.numbers)
            self.pushed.append(a_record(number, job_id=f"job-{number % 2}", attempt=number // 2))
            self.valkey.rpush(pending_records(OLD), self.pushed[-1].to_bytes())
        elif step == "old":
            self.old.drain_once(now)
        elif step == "full disk":
            with no_byte_can_be_written():
                self.old.drain_once(now)
        elif step == "killed":
            self.at_line = self.kill
            with pytest.raises(Killed) if self.valkey.exists(pending_records(OLD)) else nullcontext():
                self.recorder(OLD, self.files[0]).drain_once(now)
            self.at_line = None
            self.old = self.recorder(OLD, self.files[0])
        elif step == "taken within":
            self.at_line = lambda: heir(self.valkey, most=1)
            self.old.drain_once(now)
            self.at_line = None
        elif step in ("taken one", "taken"):
            heir(self.valkey, most=1 if step == "taken one" else 9)
        else:
            self.heir.drain_once(now)

    def kill(self):
        raise Killed

    def finish(self):
        for now in (1000.0, 2000.0, 3000.0):
            self.old.drain_once(now)
            self.heir.drain_once(now)
        assert pending(self.valkey, OLD) == pending(self.valkey, OURS) == []
        for job_id in {record.job_id for record in self.pushed}:
            newest = max((one for one in self.pushed if one.job_id == job_id), key=order)
            kept = [found for files in self.files if (found := files.find(job_id)) is not None]
            assert max(kept, key=order) == newest
            assert Run.objects.get(pk=job_id).attempt == newest.attempt
