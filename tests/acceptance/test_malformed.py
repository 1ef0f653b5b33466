from __future__ import annotations

import json
import pickle

from dispatch.jobs import CALLABLE, encode, local_job
from dispatch.queue import keys
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs

GOOD = encode(local_job("/srv/site", task="do it"))
CANARY = "canary-of-a-payload"


class Trap:
    """What pickle would run."""

    def __reduce__(self):
        return (print, (CANARY,))


def _call(job, *, function=CALLABLE):
    return json.dumps([function, None, [], {"job": job}]).encode()


PAYLOADS = {
    "a later version": _call({**GOOD, "v": 2}),
    "a missing field": _call({"v": 1, "data": {"kind": "local", "task": CANARY}}),
    "a foreign function": _call(GOOD, function="os.system"),
    "a pickle": pickle.dumps(Trap()),
    "no JSON": b"{" + CANARY.encode(),
    "nothing": b"",
    "deep nesting": b"[" * 100_000,
}


def test_what_is_no_job_is_refused_with_a_record_and_the_queue_goes_on(fleet):
    bad = {name: fleet.enqueue(fleet.folder(name.replace(" ", "-"))) for name in PAYLOADS}
    for name, job_id in bad.items():
        fleet.client.hset(keys.job(job_id.encode()), "data", PAYLOADS[name])
    fleet.client.rpush("rq:queue:pi-jobs", "id-without-hash", "id-of-a-list", b"\xff\x00id")
    fleet.client.rpush("rq:job:id-of-a-list", "no hash")
    good = fleet.enqueue(fleet.folder("good"))
    worker = fleet.worker(concurrency=2)
    worker.start(Knobs(without_containers=True))
    fleet.until_over(seconds=15)
    fleet.client.delete("rq:job:id-of-a-list")

    evidence = fleet.require_sound()
    assert outcomes(evidence) == {"completed": 1, "policy/job-malformed": len(PAYLOADS)}
    assert fleet.record(good)["outcome"] == "completed"
    assert len(fleet.events("job_dropped")) == 3
    assert evidence.counted == 1
    assert fleet.complaints() == ""
    assert CANARY not in json.dumps(fleet.events())


def test_figures_that_no_producer_writes_do_not_stop_a_job(fleet):
    values = (b"", b"-1", b"many", b"9" * 30, b"\xff", b"1.5", b"[" * 1000)
    for number, value in enumerate(values):
        job_id = fleet.enqueue(fleet.folder(f"folder-{number}"))
        for name in ("attempt", "attempts", "putBacks", "firstQueued", "attemptLog", "result_ttl"):
            fleet.client.hset(keys.job(job_id.encode()), name, value)
    fleet.worker().start(Knobs(without_containers=True))
    fleet.until_over(seconds=15)

    assert outcomes(fleet.require_sound()) == {"completed": len(values)}
    assert fleet.complaints() == ""
