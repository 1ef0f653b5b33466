"""One-shots at the gate: what another job spent, the retry of who spent it, files that say nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dispatch.ids import Kind, rq_id
from dispatch.jobs import JobData
from dispatch.queue import keys
from dispatch.queue.new_jobs import FORGE
from dispatch.triggers.claims import Claims
from dispatch.triggers.disarm import Disarmer
from dispatch.worker.attempt import attempt
from runs.outcome import InfraFault, Reason
from runs.record import Record
from tests.dispatch import queuekit
from tests.dispatch.triggers import one_shots
from tests.dispatch.triggers.one_shots import KEY, ONCE, SPENT_BY, command_job, cron, entry, written
from tests.dispatch.workerkit import COMPLETED, Bench
from tests.harness.wire import Loss, Wire

OURS = "gh-1"


@pytest.fixture
def path(tmp_path) -> Path:
    return written(tmp_path / "triggers.json", entry())


@pytest.fixture
def bench(valkey, path) -> Callable[..., Bench]:
    def make(client: Any = valkey, host_id: str = "aaaa", **fields: Any) -> Bench:
        bench = Bench(client, **{"kinds": Kind, "triggers_path": path, **fields})
        object.__setattr__(bench.host, "owner", replace(bench.host.owner, host_id=host_id))
        return bench

    return make


def ended(bench: Bench, job_id: str = OURS, job: JobData | None = None) -> str | None:
    """Run it, and say how its record ends."""
    bench.attempt(job_id, job or one_shots.job(), keeping=FORGE)
    record = bench.record()
    assert record is not None
    assert record["jobId"] == job_id
    return record["reason"] or record["outcome"]


def disarmed(bench: Bench, path: Path | None) -> None:
    """Do what the recorder does with what was pushed."""
    claims = Claims(bench.client, bench.host.owner.host_id)
    for line in queuekit.records(bench.client):
        Disarmer(path, claims, pause=lambda: None).of_record(Record.from_json(line))


@pytest.mark.parametrize(
    ("entries", "outcome"),
    [
        pytest.param([entry()], "completed", id="armed"),
        pytest.param([entry(disarmed=SPENT_BY)], "once-already-spent", id="spent by another"),
        pytest.param([entry(disarmed={"at": "x"})], "once-already-spent", id="spent by hand"),
        pytest.param([entry(disarmed={"at": "x", "jobId": OURS})], "completed", id="spent by this very job"),
        pytest.param([entry(number=8, disarmed=SPENT_BY)], "completed", id="another entry by now"),
        pytest.param([cron("a"), entry(disarmed=SPENT_BY)], "completed", id="moved"),
        pytest.param(["{"], "completed", id="unreadable"),
        pytest.param(None, "completed", id="gone"),
    ],
)
def test_only_what_another_job_has_spent_is_refused(bench, path, entries, outcome):
    if entries is None:
        path.unlink()
    elif entries == ["{"]:
        path.write_text("{")
    else:
        written(path, *entries)

    assert ended(bench()) == outcome


@pytest.mark.parametrize("once", [None, False])
def test_a_job_that_is_no_one_shots_leaves_no_claim(bench, path, valkey, once):
    written(path, entry(disarmed=SPENT_BY))

    assert ended(bench(), job=one_shots.job(once=once)) == "completed"
    assert valkey.keys("once:*") == []


def test_the_refusal_is_free_recorded_and_said(bench, path, events):
    written(path, entry(disarmed=SPENT_BY))
    host = bench()

    assert ended(host) == Reason.ONCE_ALREADY_SPENT

    assert (host.places.prepared, host.spent(), host.standing(OURS)) == (0, 0, "finished")
    assert host.record()["once"] == ONCE.to_json()
    assert events()[0] == {"event": "refused_once_already_spent", "jobId": OURS, "triggerIndex": 0}
    host.assert_nothing_is_held()


def test_of_two_in_the_queue_at_once_one_runs_wherever_they_are_taken(bench, valkey, path, tmp_path, events):
    elsewhere = written(tmp_path / "other.json", entry())
    first, second = bench(), bench(host_id="bbbb", triggers_path=elsewhere, boot_number=2)
    outcomes: list[str | None] = []
    first.containers.meanwhile = lambda: outcomes.append(ended(second, "gh-2"))

    assert ended(first) == "completed"

    assert outcomes == ["once-already-spent"]
    assert {
        "event": "refused_once_already_spent",
        "jobId": "gh-2",
        "triggerIndex": 0,
        "heldBy": OURS,
    } in events()


def test_a_host_whose_file_never_learned_of_it_does_not_run_it_again_and_learns_of_it(
    bench, valkey, path, tmp_path
):
    elsewhere = written(tmp_path / "other.json", entry())
    here, there = bench(), bench(host_id="bbbb", triggers_path=elsewhere, boot_number=2)
    ended(here)
    disarmed(here, path)

    assert ended(there, "gh-2") == "once-already-spent"

    disarmed(there, elsewhere)
    assert one_shots.entries_of(elsewhere)[0]["on"]["disarmed"]["jobId"] == OURS


def test_what_is_armed_again_by_hand_runs_again(bench, path):
    host = bench()
    for job_id in (OURS, "gh-2"):
        written(path, entry())
        assert ended(host, job_id) == "completed"
        disarmed(host, path)
        assert one_shots.entries_of(path)[0]["on"]["disarmed"]["jobId"] == job_id
    assert ended(host, "gh-3") == "once-already-spent"


def test_the_retry_of_who_spends_it_runs_and_a_rival_in_between_does_not(bench, path, valkey):
    host = bench()
    host.containers.result = InfraFault(detail="engine")
    ended(host)
    disarmed(host, path)
    assert host.standing(OURS) == "scheduled"
    assert ended(host, "gh-2") == "once-already-spent"
    disarmed(host, path)

    host.containers.result = COMPLETED
    valkey.zadd(keys.queue_keys(queuekit.QUEUE).scheduled, {rq_id(OURS): 0})
    queuekit.Host(valkey, boot_number=9).promoter.promote([queuekit.QUEUE])
    attempt(host.host, host.claim())

    assert (host.record()["jobId"], host.record()["outcome"]) == (OURS, "completed")


def test_a_rival_that_is_refused_first_spends_nothing_for_who_was_put_back(bench, path, valkey):
    host = bench()
    host.enqueue(OURS, one_shots.job(), keeping=FORGE)
    taken = host.claim()
    # As a worker leaves it that is killed right behind the gate.
    Claims(valkey, "aaaa").claim(ONCE, OURS, is_armed=lambda: True)
    assert ended(host, "gh-2") == "once-already-spent"
    disarmed(host, path)

    attempt(host.host, taken)

    assert (host.record()["jobId"], host.record()["outcome"]) == (OURS, "completed")


def test_a_command_is_its_own_one_shot(bench, path, valkey):
    written(path, {**entry(disarmed=SPENT_BY), "run": {"kind": "github", "command": "tidy"}})

    assert ended(bench()) == "completed"
    assert ended(bench(), "gh-2", command_job("tidy")) == "once-already-spent"


@pytest.mark.parametrize("loss", list(Loss))
def test_an_answer_that_is_lost_is_asked_for_again(valkey_url, bench, valkey, loss):
    host, wire = bench(), Wire(valkey_url)
    object.__setattr__(host.host, "client", wire.client())
    host.host.client.ping()
    wire.cut(loss, times=3)

    assert ended(host) == "completed"
    assert wire.has_lost
    assert len(host.faults) == 3
    assert valkey.hget(KEY, "job") == OURS.encode()
