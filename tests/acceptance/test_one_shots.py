"""One-shots on whole workers: of several deliveries one runs, and a kill never disarms what has no record."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs, StopAt
from tests.harness.standing_work import TriggersFile
from tests.harness.worker_process import WorkerProcess, start_all, until


@pytest.fixture
def knobs(fleet: Fleet) -> Knobs:
    return Knobs(without_containers=True, repositories=str(fleet.ground.home))


def _entry(number: int) -> dict[str, Any]:
    on = {"type": "issue", "action": ["closed"], "number": number, "once": True}
    return {"on": on, "run": {"kind": "github", "flow": "fix"}}


def _close(fleet: Fleet, index: int) -> str:
    """Deliver the closing of the issue that the entry at this place waits for."""
    return fleet.enqueue_forge(f"folder-{index}", once=(index, index + 1))


def _spent_by(path: Path) -> list[str | None]:
    entries = json.loads(path.read_bytes())["triggers"]
    return [entry["on"].get("disarmed", {}).get("jobId") for entry in entries]


def _workers(fleet: Fleet, names: list[str], *, share: bool) -> tuple[dict[str, TriggersFile], list[Any]]:
    files = {}
    for name in names:
        files[name] = TriggersFile(fleet.home / f"{'shared' if share else name}.json")
    return files, [fleet.worker(name, environment=files[name].environment) for name in names]


@pytest.mark.parametrize("share", [pytest.param(True, id="one file"), pytest.param(False, id="a file each")])
def test_of_two_closes_that_race_one_runs(fleet, knobs, share):
    shots = 6
    files, workers = _workers(fleet, ["alpha", "beta"], share=share)
    for file in files.values():
        file.write(*map(_entry, range(1, shots + 1)))
    for index in range(shots):
        fleet.place(f"folder-{index}", delay="0.3")
        for _ in range(2):
            _close(fleet, index)

    start_all(workers, knobs)
    fleet.until_over(seconds=30)
    late = [_close(fleet, index) for index in range(shots)]
    fleet.until_over(seconds=30)

    refused = "once-already-spent"
    assert outcomes(fleet.require_sound()) == {"completed": shots, f"policy/{refused}": 2 * shots}
    records = fleet.records(fleet.job_ids)
    ran = {record["triggerIndex"]: job_id for job_id, record in records.items() if not record["reason"]}
    assert sorted(ran) == list(range(shots))
    assert {records[job_id]["reason"] for job_id in late} == {refused}
    for name, file in files.items():
        spent = {index: by for index, by in enumerate(_spent_by(file.path)) if by}
        assert spent.items() <= ran.items()
        here = {index for index, job_id in ran.items() if share or records[job_id]["host"] == name}
        assert here <= spent.keys()


def _killed_at(worker: WorkerProcess, knobs: Knobs, point: str) -> None:
    worker.start(replace(knobs, stop_at=StopAt(point=point)), ready=False)
    until(lambda: worker.returncode is not None, seconds=20, what=f"it is killed at {point!r}")


@pytest.mark.parametrize(
    ("point", "is_disarmed"), [("written", False), ("triggers written", False), ("triggers replaced", True)]
)
def test_a_kill_between_record_and_rename_is_caught_up(fleet, knobs, point, is_disarmed):
    files, (worker,) = _workers(fleet, ["alpha"], share=False)
    path = files["alpha"].path
    files["alpha"].write(_entry(1))
    fleet.place("folder-0")
    job_id = _close(fleet, 0)
    if point == "written":
        # Somebody was killed long ago, on another machine.
        lock = path.with_name(f"{path.name}.lock")
        lock.touch()
        os.utime(lock, (time.time() - 60,) * 2)

    _killed_at(worker, knobs, point)

    assert fleet.record(job_id)["outcome"] == "completed"
    assert _spent_by(path) == [job_id if is_disarmed else None]
    worker.start(knobs)
    fleet.until_over(seconds=20)
    assert _spent_by(path) == [job_id]
    rival = _close(fleet, 0)
    fleet.until_over(seconds=20)
    assert fleet.record(rival)["reason"] == "once-already-spent"
    assert [one.name for one in path.parent.glob(f"{path.name}?*")] == []
    assert len(fleet.events("triggers_lock_stale_taken")) == 1
    fleet.require_sound()
