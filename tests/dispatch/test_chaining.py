"""Follow-up jobs: who gets one, what it is, and that nothing about them costs the parent its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from dispatch import chaining
from dispatch.ids import Kind, chained_id
from dispatch.jobdata import CronTrigger, JobData
from dispatch.jobs import decode
from dispatch.queue import keys
from dispatch.queue.producer import Producer
from dispatch.worker.attempt import attempt
from runs.abort import AbortReason
from runs.outbox import MAX_REQUEST_BYTES, Request
from runs.result import RunResult
from runs.workspace.git import GitTimeoutError
from runs.workspace.local import Prepared
from runs.workspace.scope import hash16
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench
from tests.harness.forge_jobs import forge_job

PARENT = replace(queuekit.JOB, image="job:2", provider="openai", model="gpt", max_turns=3)
SHA = "a" * 40
OWN = "pi-jobs@alpha"


@dataclass
class Ground:
    """A host whose jobs have an outbox in a real folder; the gate allows flows that begin with `ok`."""

    bench: Bench
    outbox: Path

    def ask(self, number: object, flow: object = "ok", task: object = "Go on.", **more: Any) -> None:
        (self.outbox / f"request-{number}.json").write_text(json.dumps({"flow": flow, "task": task, **more}))

    def child(self, task: str = "Go on.", *, parent: str = "local-1", flow: str = "ok") -> str:
        return chained_id(parent, flow=flow, task=task)

    def chained(self, queue: str = queuekit.QUEUE) -> list[str]:
        return [one for one in queuekit.listed(self.bench.client, queue) if one.startswith("chain-")]


@pytest.fixture
def ground(valkey, tmp_path) -> Ground:
    return make(valkey, tmp_path)


def make(
    valkey: redis.Redis,
    outbox: Path,
    *,
    asked: list[Any] | None = None,
    shas: Sequence[str | None] = (SHA,),
    queues: tuple[str, ...] = (queuekit.QUEUE,),
    **fields: Any,
) -> Ground:
    bench = Bench(valkey, **{"chain_depth_max": 1, "chain_max_per_job": 2, **fields})
    plain, stands_on = bench.host.work.prepare, cycle(shas)

    def prepare(job_id: str, job: JobData) -> Prepared:
        prepared = plain(job_id, job)
        assert isinstance(prepared, Prepared)
        return replace(prepared, outbox=prepared.outbox and outbox, sha=next(stands_on))

    def flow_allows(folder: Path, flow: str, sha: str | None) -> bool:
        if asked is not None:
            asked.append((folder, flow, sha))
        return flow.startswith("ok")

    work = replace(bench.host.work, prepare=prepare, flow_allows=flow_allows)
    bench.host = replace(bench.host, work=work, queues=queues)
    return Ground(bench, outbox)


def told(events: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What was logged of requests: never a word of what they say."""
    found = [one for one in events() if one["event"].startswith("chain-")]
    assert all(one.keys() <= {"event", "jobId", "reason", "index", "child"} for one in found)
    return found


def test_a_child_is_the_flow_and_the_task_on_its_parents_folder_and_nothing_else_of_it(
    ground, valkey, events
):
    ground.ask(1, provider="anthropic", image="evil", folder="/etc", secrets={"A": "b"})

    ground.bench.attempt(job=replace(PARENT, trigger=CronTrigger(id="nightly", pattern="@daily")))

    (child,) = ground.chained()
    stored = queuekit.hash_of(valkey, child)
    assert child == ground.child()
    assert decode(valkey.hget(keys.job(child.encode()), "data")) == JobData(
        kind=Kind.LOCAL,
        folder="/srv/site",
        flow="ok",
        task="Go on.",
        image="job:2",
        chain_depth=1,
        parent_job_id="local-1",
    )
    assert (stored["scope"], stored["attempts"]) == (hash16("/srv/site"), "2")
    assert told(events) == [{"event": "chain-enqueued", "jobId": "local-1", "index": 0, "child": child}]
    record = ground.bench.record()
    assert (record["outcome"], record["chainRefused"], record["parentJobId"]) == ("completed", 0, None)


def test_the_injected_skills_go_along():
    """Nothing runs with them yet, so no whole attempt shows it."""
    parent = SimpleNamespace(
        job=replace(PARENT, skills_dir="/srv/skills"),
        claimed=SimpleNamespace(job_id="local-1"),
        host=SimpleNamespace(chain_depth_max=1),
    )

    assert chaining._child(parent, Request(0, "ok", "Go on.")).skills_dir == "/srv/skills"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"flow": "Bad Name"}, "chain-bad-flow-name"),
        ({"flow": "../ok"}, "chain-bad-flow-name"),
        ({"flow": "ok\ud800"}, "chain-bad-flow-name"),
        ({"flow": ["ok"]}, "chain-bad-flow-name"),
        ({"flow": "o" * 65}, "chain-bad-flow-name"),
        ({"flow": "Bad", "task": ""}, "chain-bad-flow-name"),
        ({"flow": "Bad", "command": "x"}, "chain-command-refused"),
        ({"task": ""}, "chain-parse-error"),
        ({"task": " \n"}, "chain-parse-error"),
        ({"task": "a\x00b"}, "chain-parse-error"),
        ({"task": "\x1b[2J"}, "chain-parse-error"),
        ({"task": "\udc00"}, "chain-parse-error"),
        ({"task": None}, "chain-parse-error"),
        ({"task": "x" * MAX_REQUEST_BYTES}, "chain-oversize"),
        ({"flow": "no"}, "chain-gate-deny"),
        ({"flow": "no", "task": ""}, "chain-parse-error"),
    ],
)
def test_why_a_request_becomes_no_job(ground, events, asked, reason):
    ground.ask(1, **asked)
    ground.ask(2, task="This one is well.")

    ground.bench.attempt()

    assert ground.chained() == [ground.child("This one is well.")]
    assert [(one["event"], one["index"]) for one in told(events)] == [(reason, 0), ("chain-enqueued", 1)]
    assert (ground.bench.standing(), ground.bench.record()["chainRefused"]) == ("finished", 1)


@pytest.mark.parametrize(
    ("depth", "most", "reason"),
    [
        (None, 0, "chain-depth-cap"),
        (1, 1, "chain-depth-cap"),
        (1, 2, None),
        (2**31 - 2, 5, "chain-depth-cap"),
    ],
)
def test_a_chain_ends_where_it_may_go_no_deeper(valkey, tmp_path, events, depth, most, reason):
    asked: list[Any] = []
    ground = make(valkey, tmp_path, asked=asked, chain_depth_max=most)
    ground.ask(1)
    grandparent = None if depth is None else "local-0"

    ground.bench.attempt(job=replace(PARENT, chain_depth=depth, parent_job_id=grandparent))

    assert [one["event"] for one in told(events)] == [reason or "chain-enqueued"]
    # Nobody asks git about a job that is too deep anyhow.
    assert asked == ([] if reason else [(Path("/srv/site"), "ok", SHA)])


def test_of_fifty_requests_the_first_two_count(ground, events):
    for number in range(50, 0, -1):
        ground.ask(number, task=f"Number {number}.")

    ground.bench.attempt()

    assert ground.chained() == [ground.child("Number 1."), ground.child("Number 2.")]
    assert [(one["event"], one["index"]) for one in told(events)[2:]] == [
        ("chain-count-cap", index) for index in range(2, 50)
    ]
    assert ground.bench.record()["chainRefused"] == 48


def test_in_a_fleet_the_child_stays_on_the_host_that_ran_its_parent(valkey, tmp_path):
    ground = make(valkey, tmp_path, queues=(queuekit.QUEUE, OWN))
    ground.ask(1)

    ground.bench.attempt()

    assert (ground.chained(), ground.chained(OWN)) == ([], [ground.child()])


@pytest.mark.parametrize(
    "result",
    [
        RunResult(container="", exit_code=1),
        RunResult(container="", exit_code=2),
        RunResult(container="", exit_code=0, abort_reason=AbortReason.TIMEOUT),
        RunResult(container="", exit_code=137, abort_reason=AbortReason.SHUTDOWN),
        RunResult(container="", detached=True),
        RunResult(container="", never_started=True),
        ValueError("a bug"),
    ],
)
def test_only_who_completed_may_ask(ground, events, result):
    ground.ask(1)
    ground.bench.containers.result = result

    ground.bench.attempt()

    assert (ground.chained(), told(events)) == ([], [])
    assert ground.bench.record()["chainRefused"] is None


def test_a_job_of_a_forge_may_not_ask(valkey, tmp_path, events):
    ground = make(valkey, tmp_path, kinds=[Kind.GITHUB])
    ground.ask(1)

    job_id, job = forge_job("acme/web", "1")
    ground.bench.attempt(job_id, job)

    record = ground.bench.record()
    assert (record["outcome"], record["reason"], record["chainRefused"]) == ("completed", None, None)
    assert told(events) == []


def test_what_is_written_before_the_container_ends_counts_and_nothing_of_it_later(valkey, tmp_path):
    def too_late(point: str) -> None:
        if point == "before end":
            ground.ask(2, task="Too late.")

    ground = make(valkey, tmp_path, delays=too_late)
    ground.bench.containers.meanwhile = lambda: ground.ask(1)

    ground.bench.attempt()

    assert ground.chained() == [ground.child()]
    assert (ground.outbox / "request-2.json").exists()


def test_a_parent_that_runs_again_has_no_child_twice(ground, valkey, events):
    """Also when the child has been taken meanwhile."""
    ground.ask(1)
    ground.bench.attempt()
    assert ground.bench.claim().job_id == ground.child()
    valkey.delete(keys.job(b"local-1"))

    ground.bench.attempt()

    assert (ground.chained(), ground.bench.standing(ground.child())) == ([], "in-hand")
    assert [one.get("reason") for one in told(events)] == [None, "exists"]
    assert [one["chainRefused"] for one in queuekit.records(valkey)] == [0, 0]


@pytest.mark.parametrize("first", [SHA, None], ids=["a commit", "none yet"])
def test_what_an_earlier_attempt_has_committed_allows_the_job_nothing(valkey, tmp_path, first):
    asked: list[Any] = []
    ground = make(valkey, tmp_path, asked=asked, shas=(first, "b" * 40))
    ground.ask(1)
    ground.bench.containers.result = RunResult(container="", exit_code=1)
    ground.bench.attempt()
    valkey.zadd(keys.queue_keys(queuekit.QUEUE).scheduled, {"local-1": 0})
    assert queuekit.Host(valkey).promoter.promote([queuekit.QUEUE]) == 1
    ground.bench.containers.result = RunResult(container="", exit_code=0)

    attempt(ground.bench.host, ground.bench.claim())

    assert ground.bench.record()["outcome"] == "completed"
    assert asked == [(Path("/srv/site"), "ok", first)]
    assert "sha" not in ground.bench.record()["attempts"][0]


def test_who_has_lost_the_job_meanwhile_adds_nothing_to_it(ground, valkey, events):
    ground.ask(1)
    ground.bench.containers.meanwhile = lambda: valkey.hset("rq:job:local-1", "taker", "bbbb-00000001/1")

    ground.bench.attempt()

    assert ground.chained() == []
    assert [one["event"] for one in events()][-2:] == ["chain-collect-error", "transition_lost"]


LOST = redis.exceptions.ConnectionError("lost")


class Failing(Producer):
    """Fails the first times that it is asked."""

    faults: list[Exception]

    def enqueue(self, *args: Any, **kwargs: Any) -> Any:
        if self.faults:
            raise self.faults.pop(0)
        return super().enqueue(*args, **kwargs)


@pytest.mark.parametrize(
    ("faults", "stopping", "enqueued"),
    [
        pytest.param([LOST, LOST], False, 2, id="an outage that ends"),
        pytest.param([LOST], True, 1, id="an outage in a shutdown"),
        pytest.param([redis.exceptions.ResponseError("WRONGTYPE")], False, 1, id="a key of another type"),
        pytest.param([ValueError("a bug"), ValueError("a bug")], False, 0, id="a bug"),
    ],
)
def test_nothing_about_a_child_costs_its_parent_the_end(
    ground, valkey, events, monkeypatch, faults, stopping, enqueued
):
    monkeypatch.setattr(chaining, "Producer", type("_", (Failing,), {"faults": list(faults)}))
    ground.ask(1, task="One.")
    ground.ask(2, task="Two.")
    if stopping:
        ground.bench.host.out_of_patience.set()

    ground.bench.attempt()

    record = ground.bench.record()
    assert (record["outcome"], record["chainRefused"]) == ("completed", 2 - enqueued)
    assert len(ground.chained()) == enqueued
    assert [one["event"] for one in told(events)].count("chain-collect-error") == 2 - enqueued
    ground.bench.assert_nothing_is_held()


def test_a_git_that_gave_no_answer_in_time_is_not_asked_again(ground, events):
    asked: list[str] = []

    def hangs(folder: Path, flow: str, sha: str | None) -> bool:
        asked.append(flow)
        raise GitTimeoutError

    work = replace(ground.bench.host.work, flow_allows=hangs)
    ground.bench.host = replace(ground.bench.host, work=work)
    ground.ask(1)
    ground.ask(2, flow="ok-too")

    ground.bench.attempt()

    assert [one["event"] for one in told(events)] == ["chain-gate-deny"] * 2
    assert asked == ["ok"]


@pytest.mark.parametrize("broken", ["the outbox", "the gate", "the reader"])
def test_whatever_breaks_the_parent_has_completed(ground, events, monkeypatch, broken):
    def breaks(*args: object, **kwargs: object) -> None:
        raise RuntimeError("/srv/secret")

    ground.ask(1)
    if broken == "the outbox":
        ground.outbox.rename(ground.outbox.with_name("away"))
        ground.outbox.symlink_to("away")
    elif broken == "the gate":
        work = replace(ground.bench.host.work, flow_allows=breaks)
        ground.bench.host = replace(ground.bench.host, work=work)
    else:
        monkeypatch.setattr(chaining, "read_requests", breaks)

    ground.bench.attempt()

    (error,) = told(events)
    assert error["event"] == "chain-collect-error"
    assert "secret" not in str(error)
    assert (ground.bench.record()["outcome"], ground.bench.record()["chainRefused"]) == ("completed", 1)
