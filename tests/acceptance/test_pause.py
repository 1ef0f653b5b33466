from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.worker_process import ROOT, until

pytestmark = pytest.mark.docker


def _switch(fleet: Fleet, *words: str) -> str:
    """Run a command of the switch with nothing right but the server's address."""
    answer = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={"VALKEY_URL": fleet.url, "PI_CONCURRENCY": "many", "PATH": "", "PI_ENV_FILE": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.parametrize(
    ("workers", "concurrency"),
    [
        pytest.param(1, 1, id="one slot"),
        pytest.param(1, 4, id="four slots"),
        pytest.param(2, 4, id="two workers of four slots"),
    ],
)
def test_nothing_starts_while_paused_and_everything_after_that(contained, workers, concurrency):
    fleet = contained
    for name in ("alpha", "beta")[:workers]:
        fleet.worker(name, concurrency=concurrency).start(Knobs())
    folders = [fleet.folder(f"folder-{number}") for number in range(10)]
    until(
        lambda: fleet.client.info("clients")["blocked_clients"] >= workers,
        seconds=10,
        what="the workers wait for a job",
    )

    _switch(fleet, "pause", "--reason", "acceptance")
    job_ids = [fleet.enqueue(folder) for folder in folders]
    # Longer than a blocked pop, a look at the switch and a sweep.
    time.sleep(1.5)

    paused = fleet.evidence()
    assert paused.lives == ()
    assert paused.counted == 0
    assert '"paused": 10' in _switch(fleet, "status")

    _switch(fleet, "resume")
    fleet.until_over(seconds=40)

    evidence = fleet.require_sound()
    assert outcomes(evidence) == {"completed": 10}
    if (workers, concurrency) == (1, 1):
        order = sorted(evidence.spans, key=lambda span: span.begin)
        assert [span.container for span in order] == [f"pi-job-{job_id}" for job_id in job_ids]
