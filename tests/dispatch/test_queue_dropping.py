"""A cancelled job that waits: without a trace if it never ran, with a last word in its record if it did."""

from __future__ import annotations

import json
import math

import pytest
import redis

from dispatch.queue.dropping import Drop, drop
from dispatch.queue.last_host import LastHost, last_host
from dispatch.queue.moving import move
from dispatch.queue.new_jobs import Keeping
from dispatch.queue.promote import Promoter
from dispatch.queue.results import ending
from dispatch.queue.transitions import Step
from dispatch.queue.waiters import Waiters
from dispatch.worker.attempt import attempt
from hosts import keys as hosts_keys
from runs.files import RecordFiles
from runs.mirror import BODY, Mirror
from runs.models import Run
from runs.outcome import Outcome, Reason
from runs.recorder import Recorder
from runs.result import RunResult
from tests.dispatch.queuekit import QUEUE, Host, assert_sound, everything, hash_of, records
from tests.dispatch.test_console_cancelling import Hooked
from tests.dispatch.workerkit import Bench

JOB_ID = "repeat:x:1"
OFTEN = Keeping(attempts=9, finished_seconds=60, failed_seconds=60)


@pytest.fixture
def bench(valkey):
    bench = Bench(valkey)
    bench.containers.result = RunResult(container="", exit_code=1)
    bench.enqueue(JOB_ID, keeping=OFTEN)
    return bench


def to_line(bench):
    Waiters(bench.client).wake_some([QUEUE], "retry", after=-math.inf, most=9)
    Promoter(bench.client).promote([QUEUE])


def taken(bench):
    to_line(bench)
    return bench.claim()


def tried(bench):
    attempt(bench.host, taken(bench))


def put_off(bench):
    claimed = taken(bench)
    until_ms = claimed.now_ms + 60_000
    bench.host.transitions.put_off(claimed, until_ms=until_ms, reason="scope-busy", scope_hash="abcd")


def put_back(bench):
    taken(bench)
    Host(bench.client, boot_number=2).sweeper.at_boot([QUEUE])


@pytest.mark.parametrize("attempts", [0, 1, 2])
@pytest.mark.parametrize(
    "bring",
    [
        pytest.param(lambda bench: None, id="as its last attempt left it"),
        pytest.param(to_line, id="in line"),
        pytest.param(taken, id="in hand"),
        pytest.param(put_off, id="put off"),
        pytest.param(lambda bench: bench.host.transitions.give_back(taken(bench)), id="given back"),
        pytest.param(put_back, id="put back"),
    ],
)
def test_it_is_recorded_as_cancelled_if_it_ran_and_not_at_all_if_it_did_not(
    valkey, bench, tmp_path, db, bring, attempts
):
    files = RecordFiles(tmp_path)
    recorder = Recorder(valkey, "aaaa", files, mirror=Mirror(valkey, retention_days=30))
    for _ in range(attempts):
        tried(bench)
    claimed = bring(bench)
    recorder.drain_once(0)
    last, spent = files.find(JOB_ID), bench.spent()

    assert drop(valkey, JOB_ID) is Drop.DROPPED

    assert_sound(valkey, [JOB_ID])
    if bring is taken:
        assert {bench.host.transitions.give_back(claimed), Host(valkey).begin(claimed)} == {Step.LOST}
    if not attempts:
        assert (hash_of(valkey, JOB_ID), records(valkey), last) == ({}, [], None)
        assert drop(valkey, JOB_ID) is Drop.ABSENT
        return
    assert (last.outcome, last.final) == (Outcome.FAILED, False)
    assert (len(records(valkey)), recorder.drain_once(0), drop(valkey, JOB_ID)) == (1, 1, Drop.OVER)
    found = files.find(JOB_ID)
    assert (found.outcome, found.reason, found.final) == (Outcome.POLICY, Reason.OPERATOR_CANCEL, True)
    assert (found.attempt, len(found.attempts), found.attempts[-1].exit_code) == (attempts, attempts, 1)
    assert (found.host, found.started_at, found.budget_reserved) == ("alpha", None, False)
    assert (found.queued_at, found.target) == (last.queued_at, last.target)
    assert found.ended_at >= last.ended_at
    row = Run.objects.get()
    assert (row.outcome, row.final, row.attempt) == ("policy", True, attempts)
    assert json.loads(valkey.get(f"{BODY}repeat_x_1")) == found.to_json()
    assert (bench.standing(JOB_ID), bench.spent()) == ("finished", spent)
    assert ending(valkey, JOB_ID) == Reason.OPERATOR_CANCEL


@pytest.mark.parametrize(
    ("meanwhile", "answer", "attempts"),
    [
        pytest.param(tried, Drop.DROPPED, [0, 1, 2], id="another attempt"),
        pytest.param(lambda bench: Host(bench.client).begin(taken(bench)), Drop.STARTED, [0], id="started"),
        pytest.param(
            lambda bench: move(bench.client, [b"repeat_3ax_3a1"], source=QUEUE, target="pi-jobs@beta"),
            Drop.DROPPED,
            [0, 1],
            id="moved",
        ),
        pytest.param(lambda bench: drop(bench.client, JOB_ID), Drop.OVER, [0, 1], id="cancelled by another"),
    ],
)
def test_what_becomes_of_it_between_the_look_and_the_step_is_what_is_recorded(
    valkey, bench, meanwhile, answer, attempts
):
    tried(bench)

    assert drop(Hooked(valkey, "-- drop:", before=lambda: meanwhile(bench)), JOB_ID) is answer
    assert [one["attempt"] for one in records(valkey)] == attempts
    assert_sound(valkey, [JOB_ID], hash_of(valkey, JOB_ID)["origin"])


def test_whoever_repeats_the_step_by_which_it_came_to_wait_is_told_that_it_landed(valkey, bench):
    host = Host(valkey)
    claimed = host.start()
    host.again(claimed)

    drop(valkey, JOB_ID)

    assert (host.again(claimed), len(records(valkey))) == (Step.DONE, 2)


def test_a_first_attempt_between_the_look_and_the_step_is_not_forgotten(valkey, bench):
    drop(Hooked(valkey, "-- drop:", before=lambda: tried(bench)), JOB_ID)

    assert [(one["attempt"], one["final"]) for one in records(valkey)] == [(0, False), (1, True)]


@pytest.mark.parametrize("key", ["records:pending:aaaa", "rq:finished:pi-jobs", "rq:results:repeat_3ax_3a1"])
def test_where_nothing_can_be_recorded_it_stays_where_it_was(valkey, bench, key):
    tried(bench)
    valkey.delete(key)
    valkey.set(key, "x")
    before = everything(valkey)

    with pytest.raises(redis.exceptions.ResponseError):
        drop(valkey, JOB_ID)

    assert everything(valkey) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"data": "\xff", "attemptLog": "{", "worker_name": "\xff", "scope": "\ud7ff"},
        {"attempt": "9999999999999999", "firstQueued": "9999999999999999"},
        {"attempt": "1", "worker_name": "", "left": "nobody/1"},
        {"attempt": "-1", "ended_at": "\x00"},
    ],
)
def test_no_hash_keeps_a_job_from_being_cancelled(valkey, bench, fields):
    tried(bench)
    valkey.hset("rq:job:repeat_3ax_3a1", mapping=fields)

    assert drop(valkey, JOB_ID) is Drop.DROPPED
    assert_sound(valkey, [JOB_ID])
    assert "records:pending:" not in everything(valkey)


@pytest.mark.parametrize(
    ("worker_name", "left", "known", "found"),
    [
        pytest.param("alpha.aaaa-00000001.pi-jobs", "", "aaaa bbbb", ("alpha", "aaaa"), id="known"),
        pytest.param("alpha.aaaa-00000001.pi-jobs", "", "", ("alpha", "aaaa"), id="no registry"),
        pytest.param("alpha.aaaa-00000001.pi-jobs", "", "bbbb cccc", ("alpha", "cccc"), id="forgotten"),
        pytest.param("", "aaaa-00000001/3", "aaaa bbbb", ("host-aaaa", "aaaa"), id="never begun"),
        pytest.param("", "aaaa-00000001/3", "bbbb", (None, "bbbb"), id="never begun, forgotten"),
        pytest.param("a.aaaa-00000001.pi-jobs", "bbbb-00000001/3", "", ("a", "aaaa"), id="let go elsewhere"),
        pytest.param(
            "a.b-00000009.c.aaaa-00000001.pi-jobs@a.b-00000009.c",
            *("", "", ("a.b-00000009.c", "aaaa")),
            id="a name like a boot",
        ),
        pytest.param("alpha", "x", "aaaa", None, id="nobody"),
    ],
)
def test_the_host_that_writes_is_one_whose_list_somebody_drains(valkey, worker_name, left, known, found):
    def padded(host_id):
        return host_id.ljust(16, "0")

    for beat, host_id in enumerate(known.split(), start=1):
        entry = json.dumps({"name": f"host-{host_id}", "beat": beat})
        valkey.hset(hosts_keys.HOSTS_KNOWN, padded(host_id), entry)

    answer = last_host(
        valkey,
        worker_name=worker_name.replace("aaaa", padded("aaaa")),
        left=left.replace("aaaa", padded("aaaa")),
    )

    assert answer == (found and LastHost(name=found[0], keeper=padded(found[1])))
    valkey.set(hosts_keys.HOSTS_KNOWN, "no hash")
    assert (last_host(valkey, worker_name=worker_name, left=left) is None) == (found is None)
