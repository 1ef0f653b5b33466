"""The whole way with the real agent: command line, queue, worker, job image, repository, record."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.harness.evidence import Evidence, JobEvidence
from tests.harness.fleet import Fleet
from tests.harness.judge import judge, shown, started_once
from tests.harness.knobs import Knobs
from tests.harness.manage import manage
from tests.harness.stub_model import StubModel
from tests.harness.worker_process import WorkerProcess
from tests.runs.realjobs import MAPPED, USER

pytestmark = [pytest.mark.docker, pytest.mark.real_image]

KEY = "key-of-the-overlay"
MAX_TURNS = 3
MODELS = ("writes-a-file", "tools-for-ever", "fails-always", "fails-three-times", "of-another-world")


class Town:
    """One worker whose jobs ran the real image, all at once, each on a folder and a model of its own."""

    def __init__(self, fleet: Fleet, worker: WorkerProcess, stub: StubModel) -> None:
        self.fleet = fleet
        self._stub = stub
        folders = [_folder(fleet, model) for model in MODELS]
        with ThreadPoolExecutor(len(MODELS)) as people:
            job_ids = people.map(partial(_run, worker), folders, MODELS)
            self._ids = dict(zip(MODELS, job_ids, strict=True))
        fleet.job_ids += self._ids.values()
        fleet.until_over(seconds=90)
        fleet.until_tidy(seconds=10)
        self.evidence: Evidence = fleet.evidence()

    def job(self, model: str) -> JobEvidence:
        """Everything that there is about the job of this model."""
        (found,) = (job for job in self.evidence.jobs if job.job_id == self._ids[model])
        return found

    def record(self, model: str) -> Mapping[str, Any]:
        """Its record file."""
        return self.job(model).files[0]

    def requests(self, model: str) -> int:
        """How often its model was asked."""
        return sum(1 for request in self._stub.requests(KEY) if request["model"] == model)

    def containers(self, model: str) -> int:
        """How many containers the engine started for it."""
        lives = self.evidence.lives or ()
        return sum(len(life.started) for life in lives if life.job_id == self._ids[model])


def _folder(fleet: Fleet, name: str) -> Path:
    folder = fleet.folder(name)
    shutil.rmtree(folder / ".fake")
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{USER.uid}:{USER.gid}", str(folder)], check=True)
    return folder


def _run(worker: WorkerProcess, folder: Path, model: str) -> str:
    """Enqueue a job as a person does; its id."""
    words = ("--task", "Do it.", "--provider", "stub", "--model", model, "--max-turns", str(MAX_TURNS))
    done = manage(worker.environment, "run", str(folder), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def town(valkey_server_url: str, engine: object, job_image: str, stub_model: StubModel) -> Iterator[Town]:
    with redis.Redis.from_url(valkey_server_url) as client:
        client.flushall()
    with Fleet(valkey_server_url, image=job_image, engine=engine) as fleet:
        overlay = fleet.home / "overlay"
        overlay.mkdir()
        (overlay / "models.json").write_text(stub_model.models_file(KEY))
        worker = fleet.worker(
            environment={
                "PI_GLOBAL_PI_DIR": str(overlay),
                # How long the agent itself waits before it asks a failing provider again.
                "PI_FORWARD_ENV": "PI_RETRY_BASE_MS",
                "PI_RETRY_BASE_MS": "1",
            }
        )
        worker.start(Knobs())
        yield Town(fleet, worker, stub_model)


def _end(record):
    return record["outcome"], record["reason"], record["exitCode"], record["attempt"]


def test_all_that_holds_of_every_job_holds_of_the_real_ones(town):
    # The real agent keeps no journal in its folder; the engine's events say how often it was started.
    violations = judge(town.evidence, without=[started_once])

    assert not violations, shown(violations)
    assert town.evidence.counted == sum(map(town.containers, MODELS)) == 7


def test_the_agent_changes_the_repository_and_what_it_used_stands_in_file_and_row(town):
    made = town.fleet.ground.home / "writes-a-file" / "made-by-pi.txt"
    assert made.read_text() == "made by pi\n"
    assert (made.stat().st_uid, made.stat().st_gid) == (MAPPED.uid, MAPPED.gid)

    (file,), (row,) = (job := town.job("writes-a-file")).files, job.rows
    (used,) = file["usage"]["models"]
    assert _end(file) == ("completed", None, 0, 0)
    assert (file["provider"], file["model"]) == ("stub", "writes-a-file")
    assert file["turns"] == used["calls"] == town.requests("writes-a-file") == 2
    assert file["tokens"]["total"] == used["total"] == 240
    assert file["tokens"]["cost"] == used["cost"] > 0
    for name in ("turns", "tokens", "usage"):
        assert row[name] == file[name]


def test_the_turn_budget_of_a_job_ends_it_exactly_at_the_cap(town):
    record = town.record("tools-for-ever")

    assert _end(record) == ("policy", "runner-policy", 2, 0)
    assert record["turns"] == town.requests("tools-for-ever") == MAX_TURNS


@pytest.mark.parametrize(
    ("model", "end", "requests"),
    [
        pytest.param("fails-always", ("failed", None, 1, 1), 6, id="for ever"),
        pytest.param("fails-three-times", ("completed", None, 0, 1), 4, id="during the first attempt"),
    ],
)
def test_a_failing_provider_is_tried_again_once_and_recorded_as_two_attempts(town, model, end, requests):
    record = town.record(model)

    (first,) = record["attempts"]
    assert _end(record) == end
    assert (first["outcome"], first["reason"], first["exitCode"]) == ("failed", None, 1)
    assert town.job(model).rows[0]["attempts"] == [first]
    assert (town.requests(model), town.containers(model)) == (requests, 2)


def test_an_unknown_model_is_policy_and_not_tried_again(town):
    record = town.record("of-another-world")

    assert _end(record) == ("policy", "runner-policy", 2, 0)
    assert record["attempts"] == []
    assert (town.requests("of-another-world"), town.containers("of-another-world")) == (0, 1)
