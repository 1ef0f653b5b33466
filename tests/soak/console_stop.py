"""Check 7 of the console: Chromium throws the kill switch at six containers, beside `manage.py stop`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.harness.browser import browser
from tests.harness.console_person import Person
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import ROOT, WorkerProcess, start_all, until
from tests.soak.stage import Clock, stage

#: A frozen host is not given up meanwhile: its jobs are to be stopped, not failed.
_PATIENT = Knobs(timings=replace(QUICK, queue=replace(QUICK.queue, gone=120)))
_EACH, _SECONDS = 3, 12
_ROWS = """
return [...document.querySelectorAll('#operation-rows tbody tr')]
  .map(row => [...row.children].map(cell => cell.textContent.trim()))
"""


def run(*, short: bool) -> dict[str, object]:
    """Once each with both hosts answering and with one that stays silent; else three times."""
    clock = Clock()
    rounds = 1 if short else 3
    figures: dict[str, object] = {}
    for number in range(rounds):
        for silent in (False, True):
            figures[f"{'one silent' if silent else 'both answer'} {number}"] = _round(silent=silent)
    return {"seconds": clock.seconds, **figures}


def _round(*, silent: bool) -> dict[str, object]:
    home = Path(tempfile.mkdtemp(prefix="pd-console-"))
    with stage() as (fleet, _):
        workers = [fleet.worker(name, concurrency=_EACH) for name in ("alpha", "beta")]
        start_all(workers, _PATIENT)
        running = _six(fleet, workers)
        with WebProcess(workers[0].environment, home) as web, browser(home / "profile") as page:
            person = Person(web=web, page=page, pictures=home)
            figures = _stop(person, workers, running, silent=silent)
        for worker in workers:
            worker.thaw()
        fleet.until_over(seconds=30)
        assert outcomes(fleet.require_sound(tidy_seconds=20)) == {"policy/operator-stop": 2 * _EACH}
        assert {life.job_id for life in fleet.lives() if life.died} == set(running)
        return figures


def _six(fleet: Fleet, workers: list[WorkerProcess]) -> list[str]:
    running = [
        fleet.enqueue(fleet.folder(f"{worker.name}-{number}", delay="300"), queue=worker.queue)
        for worker in workers
        for number in range(_EACH)
    ]
    until(lambda: len(fleet.ground.spans()) == len(running), seconds=30, what="six jobs run")
    return running


def _stop(
    person: Person, workers: list[WorkerProcess], running: list[str], *, silent: bool
) -> dict[str, object]:
    """Stop from both sides at once; the page's rows are the command's list. Answers figures."""
    person.enter("operator")
    person.goes("switch/stop/")
    person.says(*running)
    person.fills(Reason="fire", Watch_for_so_many_seconds=str(_SECONDS))
    # Frozen, so that both see all six before the first is gone.
    for worker in workers:
        worker.freeze()
    began = time.monotonic()
    command = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "stop", "--json", "--timeout", str(_SECONDS)],
        env=dict(workers[0].environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        person.follows("Pause everything and stop all jobs")
        until(lambda: len(_rows(person)) == len(running), seconds=10, what="the page lists six")
        for worker in workers[: 1 if silent else None]:
            worker.thaw()
        said, _ = command.communicate(timeout=60)
    finally:
        command.kill()
    gone = _EACH if silent else 2 * _EACH
    person.until_says(f"{gone} of {2 * _EACH} containers are confirmed gone")
    proof, rows = json.loads(said), _rows(person)
    assert [(host, name, job.removeprefix("job ")) for host, name, job, _ in rows] == [
        (one["host"], one["container"], one["job"]) for one in proof["containers"]
    ]
    confirmed = {one["container"]: one["state"] == "gone" for one in proof["containers"]}
    assert {name: state == "confirmed gone" for _, name, _, state in rows} == confirmed
    assert sum(confirmed.values()) == gone
    assert command.returncode == int(silent)
    return {"confirmed": gone, "of": 2 * _EACH, "seconds": round(time.monotonic() - began, 1)}


def _rows(person: Person) -> list[list[str]]:
    found: Any = person.page.run(_ROWS)
    return list(found)
