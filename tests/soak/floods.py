"""Jobs that flood, fork, cling to life and eat memory: each ends as it should, the others do not notice."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.harness.fleet import Fleet
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import WorkerProcess, until
from tests.soak.stage import Clock, stage

_MIB = 1 << 20
_MOST_GROWTH_MIB = 50
#: What is followed of an output for people; see `runs.output`.
_MOST_RAW_LOG = 10 * _MIB
_PROBES = 6


def run(*, short: bool) -> dict[str, object]:
    """Short: a quarter of the output."""
    part = 4 if short else 1
    floods = {
        "bytes": {"output-bytes": str(200_000_000 // part)},
        "line": {"line-bytes": str(64 * _MIB // part)},
        "fork": {"fork": "600"},
        "memory": {"fill-memory": ""},
    }
    clock = Clock()
    with stage() as (fleet, _):
        flooded = _flood(fleet, floods)
    with stage() as (fleet, _):
        stubborn = _cling(fleet)
    return {"seconds": clock.seconds, **flooded, **stubborn}


def _flood(fleet: Fleet, floods: Mapping[str, Mapping[str, str]]) -> Mapping[str, object]:
    worker = fleet.worker(concurrency=6, environment={"PI_CAPTURE_JOB_LOGS": "1"})
    worker.start(Knobs(timings=replace(QUICK, job_limit=600), memory_bytes=256 * _MIB))
    folders = [fleet.folder(f"probe-{number}") for number in range(_PROBES)]
    quiet = _probe(fleet, folders)

    worker.forget_peak()
    before = worker.memory()
    jobs = {name: fleet.enqueue(fleet.ground.folder(name, orders)) for name, orders in floods.items()}
    until(
        lambda: {"bytes", "line"} <= {span.folder for span in fleet.ground.spans()},
        seconds=60,
        what="the floods run",
    )
    loud = _probe(fleet, folders)
    fleet.until_over(seconds=600)
    growth = worker.memory("VmHWM") - before

    ends = {name: _end(fleet.record(job_id)) for name, job_id in jobs.items()}
    assert ends == {
        "bytes": ("completed", None, 0, 2, 0),
        "line": ("completed", None, 0, 2, 0),
        "fork": ("completed", None, 0, 2, 0),
        "memory": ("failed", None, 137, None, 1),
    }, ends
    assert growth < _MOST_GROWTH_MIB, f"the worker grew by {growth:.0f} MiB"
    largest = max(path.stat().st_size for path in (worker.state_dir / "logs").glob("*.log"))
    assert largest < _MOST_RAW_LOG, f"a raw log of {largest} bytes"
    _require_on_time(quiet, loud)
    fleet.require_sound()
    return {
        "growthMiB": round(growth, 1),
        "rssMiB": round(worker.memory(), 1),
        "largestRawLog": largest,
        "ends": ends,
        **{f"quiet{key}": value for key, value in quiet.items()},
        **{f"loud{key}": value for key, value in loud.items()},
    }


def _probe(fleet: Fleet, folders: Sequence[Path]) -> dict[str, float]:
    """Run small jobs one after the other: the worst wait until it was taken, and until its runner spoke."""
    taken, spoke = [], []
    for folder in folders:
        asked = time.clock_gettime(time.CLOCK_BOOTTIME)
        job_id = fleet.enqueue(folder)
        fleet.until_over([job_id], seconds=120)
        begin = [span for span in fleet.ground.spans() if span.folder == folder.name][-1].begin
        record = fleet.record(job_id)
        taken.append((_instant(record, "startedAt") - _instant(record, "queuedAt")).total_seconds())
        spoke.append(begin - asked)
    return {"Taken": round(max(taken), 2), "Spoke": round(max(spoke), 2)}


def _require_on_time(quiet: Mapping[str, float], loud: Mapping[str, float]) -> None:
    """The worker takes a job as soon as ever; the engine, which writes the floods down, may be busier."""
    assert loud["Taken"] <= max(1.0, 3 * quiet["Taken"]), (quiet, loud)
    assert loud["Spoke"] <= max(10.0, 5 * quiet["Spoke"]), (quiet, loud)


def _cling(fleet: Fleet) -> Mapping[str, object]:
    """One that ignores SIGTERM is gone soon after its limit; meanwhile others run."""
    worker: WorkerProcess = fleet.worker(concurrency=2)
    worker.start(Knobs(timings=replace(QUICK, job_limit=4, deadline_slack=600)))
    job_id = fleet.enqueue(fleet.folder("stubborn", ignore_term="", delay="600"))
    fleet.enqueue(fleet.folder("other"))
    fleet.until_over(seconds=60)
    record = fleet.record(job_id)
    assert (record["outcome"], record["reason"]) == ("policy", "worker-abort"), record
    fleet.require_sound()
    took = (_instant(record, "endedAt") - _instant(record, "startedAt")).total_seconds()
    assert took < 4 + 5 + 10, f"{took} s after its start"
    return {"stubbornSeconds": round(took, 1)}


def _end(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(record[key] for key in ("outcome", "reason", "exitCode", "turns", "attempt"))


def _instant(record: Mapping[str, Any], key: str) -> datetime:
    return datetime.fromisoformat(record[key])
