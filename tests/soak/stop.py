"""A worker frozen with SIGSTOP beside one of a second host: while idle, and with jobs running."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.worker.timings import WorkerTimings
from tests.harness.evidence import QUEUE, JobEvidence
from tests.harness.fleet import Fleet
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import WorkerProcess, until
from tests.soak.stage import Clock, stage

_PROMISE_SECONDS = 60


def run(*, short: bool) -> dict[str, object]:
    """Production's timings unless short."""
    timings = QUICK if short else WorkerTimings()
    clock = Clock()
    with stage() as (fleet, _):
        idle = _idle(fleet, Knobs(timings=timings))
    with stage() as (fleet, _):
        running = _running(fleet, timings)
    return {"seconds": clock.seconds, **idle, **running}


def _idle(fleet: Fleet, knobs: Knobs) -> Mapping[str, object]:
    """Freeze an idle worker, let the server hand it a job, kill it: the other host runs the job, once."""
    alpha, beta = fleet.worker("alpha"), fleet.worker("beta")
    beta.start(knobs)
    alpha.start(knobs)
    folder = fleet.folder("one", delay="0.2")
    stranded = _strand(fleet, alpha, folder)
    enqueued = time.monotonic()
    time.sleep(2)
    alpha.kill()
    fleet.until_over(seconds=_PROMISE_SECONDS)
    took = time.monotonic() - enqueued
    assert fleet.record(stranded)["outcome"] == "completed"
    assert fleet.record(stranded)["host"] == "beta"
    fleet.require_sound()
    return {"idleToRecord": round(took, 1)}


def _strand(fleet: Fleet, worker: WorkerProcess, folder: Path) -> str:
    """Freeze the worker while it waits for a job, and enqueue until one is in its hand."""
    boot_has = keys.queue_keys(QUEUE).taken("")
    for _ in range(10):
        _until_both_wait(fleet)
        worker.freeze()
        for _ in range(2):
            job_id = fleet.enqueue(folder)
            time.sleep(0.3)
            lists = [key.decode() for key in fleet.client.scan_iter(f"{boot_has}{worker.host_id}-*")]
            if any(fleet.client.lpos(key, rq_id(job_id)) is not None for key in lists):
                return job_id
        worker.thaw()
    raise AssertionError("the server never handed a job to the frozen worker")


def _until_both_wait(fleet: Fleet) -> None:
    until(
        lambda: fleet.all_wait(2) and fleet.how_many_are_over() == len(fleet.job_ids),
        seconds=30,
        what="both workers wait for a job",
    )


def _running(fleet: Fleet, timings: WorkerTimings) -> Mapping[str, object]:
    """Freeze a worker with jobs running until the other host has failed them, then let it go on."""
    alpha, beta = fleet.worker("alpha"), fleet.worker("beta")
    alpha.start(Knobs(timings=timings))
    ends_at = ("8", "9", f"{1.3 * timings.queue.gone + 13:.0f}")
    jobs = [
        fleet.enqueue(fleet.folder(f"folder-{number}", delay=delay)) for number, delay in enumerate(ends_at)
    ]
    until(lambda: len(fleet.ground.spans()) == len(jobs), seconds=20, what="the jobs run")
    beta.start(Knobs(timings=timings))
    alpha.freeze()
    frozen = time.monotonic()
    fleet.until_over(seconds=2 * timings.queue.gone + 30)
    took = time.monotonic() - frozen
    before = _what_is_known(fleet, jobs)
    assert [record["reason"] for record, *_ in before] == ["stalled"] * len(jobs)
    assert [record["host"] for record, *_ in before] == ["alpha"] * len(jobs)

    said = alpha.said_so_far()
    alpha.thaw()
    until(lambda: _lost(alpha, said) == set(jobs), seconds=90, what="the late results are turned away")
    fleet.until_tidy(seconds=10)
    assert _what_is_known(fleet, jobs) == before
    later = [fleet.enqueue(fleet.ground.home / f"folder-{number}") for number in range(2)]
    fleet.until_over(later, seconds=30)
    fleet.require_sound()
    return {"stalledAfter": round(took, 1), "lateResults": len(jobs)}


def _what_is_known(fleet: Fleet, job_ids: list[str]) -> list[tuple[Mapping[str, Any], ...]]:
    """Every word on these jobs, to be compared with every word later."""

    def known(job: JobEvidence) -> tuple[Mapping[str, Any], ...]:
        (record,), (row,) = job.files, job.rows
        return record, row, fleet.hash_of(job.job_id), {"ends": job.results, "grants": job.grants}

    return [known(job) for job in fleet.evidence().jobs if job.job_id in job_ids]


def _lost(worker: WorkerProcess, said: int) -> set[str]:
    return {event["jobId"] for event in worker.events(said) if event["event"] == "transition_lost"}
