"""Follow-up jobs of whole workers: real containers write real outboxes, and each request ends as it must."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dispatch.ids import chained_id
from dispatch.jobs import local_job
from dispatch.queue import keys
from dispatch.queue.producer import Producer
from tests.harness.fleet import Fleet
from tests.harness.gate import Gate
from tests.harness.ground import JOB_UID
from tests.harness.knobs import Knobs
from tests.harness.worker_process import until
from tests.runs.repositories import Repo

pytestmark = pytest.mark.docker

ASK = """ask() { printf '{"flow":"%s","task":"%s"}' "$2" "${3:-Go on.}" >"/outbox/request-$1.json"; }\n"""
ORDERS = "/workspace/.fake"
SKILL = ".pi/skills/{}/SKILL.md"
ENQUEUED, DENIED, CAPPED = "chain-enqueued", "chain-gate-deny", "chain-count-cap"

# What a job does in its container, and the reason (E 7.1) of each of its requests.
ASKED = {
    "well": ("ask 1 open", [ENQUEUED]),
    "link": ("ln -s /job/prompt.md /outbox/request-1.json", ["chain-not-regular-file"]),
    "pipe": ("mkfifo /outbox/request-1.json", ["chain-not-regular-file"]),
    "directory": ("mkdir /outbox/request-1.json", ["chain-not-regular-file"]),
    "oversize": ("head -c 4097 /dev/zero >/outbox/request-1.json", ["chain-oversize"]),
    "json": ("echo '{' >/outbox/request-1.json", ["chain-parse-error"]),
    "command": ("""echo '{"command":"x"}' >/outbox/request-1.json""", ["chain-command-refused"]),
    "name": ("ask 1 ../open", ["chain-bad-flow-name"]),
    "unknown": ("ask 1 no-such-flow", [DENIED]),
    "closed": ("ask 1 closed", [DENIED]),
    "fifty": (
        'for n in $(seq 50); do ask $n open "Number $n."; done',
        [ENQUEUED, ENQUEUED, *[CAPPED] * 48],
    ),
    # The job cannot commit in this image, so the test does it for it, in the middle of its run.
    "itself": (
        f"touch {ORDERS}/running; until [ -e {ORDERS}/committed ]; do sleep 0.05; done; ask 1 closed",
        [DENIED],
    ),
}


def opened(name: str, word: str) -> str:
    return f"---\nname: {name}\nai-trigger: {word}\n---\nWork.\n"


def folder(fleet: Fleet, name: str, command: str) -> Path:
    """A repository with a flow that jobs may start and one that they may not."""
    path = fleet.folder(name, command=ASK + command)
    repo = Repo(path)
    for flow, word in (("open", "allow"), ("closed", "deny")):
        repo.write(SKILL.format(flow), opened(flow, word))
    repo.git("add", ".pi")
    repo.git("commit", "-q", "-m", "flows")
    if os.geteuid() == 0:
        repo.give_to(JOB_UID, JOB_UID)
    return path


def opt_in(path: Path) -> None:
    """What the job would do: commit that it may start what it may not."""
    until((path / ".fake/running").exists, seconds=60, what="the job runs")
    repo = Repo(path)
    repo.write(SKILL.format("closed"), opened("closed", "allow"))
    repo.git("commit", "-q", "-a", "-m", "me too")
    (path / ".fake/committed").touch()


def children_of(fleet: Fleet) -> list[str]:
    """The chained jobs that the queue knows, also for the judge."""
    found = [key.decode().removeprefix("rq:job:") for key in fleet.client.scan_iter("rq:job:chain-*")]
    fleet.job_ids += [one for one in found if one not in fleet.job_ids]
    return found


def told(fleet: Fleet, job_id: str) -> list[tuple[str, int]]:
    return [
        (one["event"], one["index"])
        for one in fleet.events()
        if one["event"].startswith("chain-") and one["jobId"] == job_id
    ]


def test_each_request_ends_with_its_reason(contained):
    parents = {}
    contained.worker(concurrency=len(ASKED)).start(Knobs())
    for name, (command, _) in ASKED.items():
        parents[name] = contained.enqueue(folder(contained, name, command))
    opt_in(contained.ground.home / "itself")
    contained.until_over(seconds=60)
    children = children_of(contained)
    contained.until_over(seconds=60)

    for name, (_, reasons) in ASKED.items():
        record = contained.record(parents[name])
        assert [
            event for event, _ in sorted(told(contained, parents[name]), key=lambda one: one[1])
        ] == reasons
        assert [index for _, index in told(contained, parents[name])] == list(range(len(reasons))), name
        refused = len(reasons) - reasons.count(ENQUEUED)
        assert (record["outcome"], record["chainRefused"]) == ("completed", refused), name
    assert sorted(children) == sorted(
        [
            chained_id(parents["well"], flow="open", task="Go on."),
            *(chained_id(parents["fifty"], flow="open", task=f"Number {n}.") for n in (1, 2)),
        ]
    )
    for child in children:
        record = contained.record(child)
        assert (record["chainDepth"], record["flow"], record["parentJobId"] in parents.values()) == (
            1,
            "open",
            True,
        )
        # It asks for the same as its parent did, and may not.
        assert told(contained, child)[0] == ("chain-depth-cap", 0)
    contained.require_sound()


def test_a_child_waits_until_its_parent_is_done_and_is_no_second_one_of_a_parent_that_runs_again(contained):
    gate = Gate(contained.home / "gate")
    worker = contained.worker()
    worker.start(Knobs(gates={"before end": str(gate)}))
    path = folder(contained, "folder", "ask 1 open")
    parent = contained.enqueue(path)
    gate.until_arrived(1)
    (child,) = children_of(contained)
    # The parent's container is over and its outbox was read; it still has the folder.
    (outbox,) = worker.state_dir.glob("jobs/*/outbox")
    (outbox / "request-2.json").write_text('{"flow": "open", "task": "Too late."}')
    worker.until_said("scope_busy_deferred", jobId=child)
    gate.open()
    contained.until_over([parent, child], seconds=60)

    assert children_of(contained) == [child]
    assert contained.hash_of(child)[b"origin"].decode() == worker.queue
    contained.require_sound()

    # As if its id had been forgotten, and somebody had asked for the same again.
    contained.client.delete(keys.job(parent.encode()), keys.results(parent.encode()))
    contained.client.zrem(keys.queue_keys("pi-jobs").finished, parent)
    Producer(contained.client).enqueue("pi-jobs", parent, local_job(str(path), task="Do as you are told."))
    worker.until_said("chain-enqueued", jobId=parent, reason="exists")

    assert children_of(contained) == [child]
    assert contained.record(child)["attempt"] == 0
