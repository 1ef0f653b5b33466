"""A host that nobody hears for a while: it stands still, or what it sends is dropped on the way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from hosts.names import SHARED_QUEUE
from tests.harness.blackhole import BlackHole
from tests.harness.evidence import JobEvidence
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.worker_process import WorkerProcess, start_all, until


def stand_still(fleet: Fleet, knobs: Knobs, *, silence: float, delays: Sequence[float]) -> float:
    """Freeze alpha with jobs of both its queues running, until beta has failed them and longer; let it go on.

    Each of the jobs ends, after a delay, before alpha goes on. Answers how long it took to settle them.
    """
    alpha, beta = fleet.worker("alpha"), fleet.worker("beta")
    alpha.start(knobs)
    job_ids = [
        fleet.enqueue(
            fleet.folder(f"folder-{number}", delay=f"{delay}"), queue=(SHARED_QUEUE, alpha.queue)[number % 2]
        )
        for number, delay in enumerate(delays)
    ]
    until(lambda: len(fleet.ground.spans()) == len(job_ids), seconds=20, what="the jobs run")
    alpha.freeze()
    frozen = time.monotonic()
    beta.start(knobs)
    fleet.until_over(seconds=2 * knobs.timings.queue.gone + 30)
    took = time.monotonic() - frozen
    known = _known(fleet)
    assert {(job.files[0]["reason"], job.files[0]["host"]) for job in known} == {("stalled", "alpha")}
    assert all(job.mirrored == job.files[0] for job in known)

    time.sleep(max(0.0, frozen + silence - time.monotonic()))
    said = alpha.said_so_far()
    alpha.thaw()
    for job_id in job_ids:
        alpha.until_said("transition_lost", after=said, jobId=job_id, seconds=90)
    # What nobody waits for any more is left to the reaper's pace.
    evidence = fleet.require_sound(tidy_seconds=knobs.timings.reap_every + 10)
    assert outcomes(evidence) == {"failed/stalled": len(job_ids)}
    assert _known(fleet) == known
    return took


def _known(fleet: Fleet) -> list[JobEvidence]:
    """Every word on the jobs, but for the logs."""
    return [replace(job, told=()) for job in fleet.evidence().jobs]


def cut_off(fleet: Fleet, knobs: Knobs, *, seconds: float) -> float:
    """Drop what goes between alpha and Valkey; answers how many seconds after that alpha had worked again.

    `late` of the knobs' timings is to be less than `seconds`, `gone` more: a pop that was handed to nobody is
    put back meanwhile, and what runs is not given up.
    """
    with BlackHole(fleet.home, fleet.url) as hole:
        alpha = fleet.worker("alpha", environment={"VALKEY_URL": hole.url})
        beta = fleet.worker("beta")
        start_all((alpha, beta), knobs)
        running = fleet.enqueue(fleet.folder("running", delay=f"{0.8 * seconds}"), queue=alpha.queue)
        outlasting = fleet.enqueue(fleet.folder("outlasting", delay=f"{1.2 * seconds}"), queue=alpha.queue)
        until(lambda: len(fleet.ground.spans()) == 2, seconds=20, what="the jobs run")

        hole.swallow()
        ends, said = time.monotonic() + seconds, alpha.said_so_far()
        shared = [fleet.enqueue(fleet.folder(f"shared-{number}")) for number in range(6)]
        own = fleet.enqueue(fleet.folder("own"), queue=alpha.queue)
        alpha.until_said("valkey_unreachable", after=said)
        alpha.until_said("host_registry_unreachable", after=said, seconds=knobs.timings.host_beat_every + 10)
        until(lambda: _has_ended(fleet, "running"), seconds=seconds, what="what was begun goes on to its end")
        time.sleep(max(0.0, ends - time.monotonic()))
        assert not [event for event in alpha.events(said) if event["event"] == "job_started"]
        assert fleet.statuses([running, outlasting, own]) == [b"started", b"started", b"queued"]

        hole.pass_on()
        healed = time.monotonic()
        fleet.until_over([own], seconds=30)
        took = time.monotonic() - healed
        alpha.until_said("valkey_restored", after=said)
        alpha.until_said("host_registry_restored", after=said, seconds=knobs.timings.host_beat_every + 10)
        fleet.until_over(seconds=seconds + 30)

        evidence = fleet.require_sound(tidy_seconds=knobs.timings.reap_every + 10)
        assert outcomes(evidence) == {"completed": 9}
        assert _hosts(fleet) == {
            **dict.fromkeys((running, outlasting, own), "alpha"),
            **dict.fromkeys(shared, "beta"),
        }
        assert fleet.complaints() == ""
        # While it can still be heard: nothing may break when its socket does.
        _end(alpha)
        return took


def _has_ended(fleet: Fleet, folder: str) -> bool:
    return any(span.end for span in fleet.ground.spans() if span.folder == folder)


def _hosts(fleet: Fleet) -> dict[str, str]:
    return {job_id: record["host"] for job_id, record in fleet.records(fleet.job_ids).items()}


def _end(worker: WorkerProcess) -> None:
    assert worker.starts == 1
    assert worker.terminate() == 0
