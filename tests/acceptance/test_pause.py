from __future__ import annotations

import time

import pytest

from hosts import keys as hosts_keys
from hosts import switches
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import start_all, until


@pytest.mark.docker
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
    names = ("alpha", "beta")[:workers]
    start_all([fleet.worker(name, concurrency=concurrency) for name in names], Knobs())
    folders = [fleet.folder(f"folder-{number}") for number in range(10)]
    until(lambda: fleet.all_wait(workers), seconds=10, what="the workers wait for a job")

    switches.pause(fleet.client, (hosts_keys.FLEET,), by="acceptance", reason="")
    job_ids = [fleet.enqueue(folder) for folder in folders]
    # Longer than a blocked pop, a look at the switch and a sweep.
    time.sleep(QUICK.pop_block + QUICK.pause_recheck + QUICK.sweep_every + 0.6)

    paused = fleet.evidence()
    assert paused.lives == ()
    assert paused.counted == 0
    waiting = [one.decode() for one in fleet.client.lrange("rq:queue:pi-jobs", 0, -1)]
    assert sorted(waiting) == job_ids
    assert waiting == job_ids or workers > 1

    switches.resume_all(fleet.client)
    fleet.until_over(seconds=40)

    evidence = fleet.require_sound()
    assert outcomes(evidence) == {"completed": 10}
    if (workers, concurrency) == (1, 1):
        order = sorted(evidence.spans, key=lambda span: span.begin)
        assert [span.container for span in order] == [f"pi-job-{job_id}" for job_id in job_ids]


def test_a_pause_right_before_the_container_holds_and_gives_the_money_back(fleet):
    gate = fleet.home / "gate"
    job_ids = [fleet.enqueue(fleet.folder(f"folder-{number}")) for number in range(2)]
    worker = fleet.worker(concurrency=1)
    worker.start(Knobs(without_containers=True, gates={"before begin": str(gate)}), ready=False)
    until(gate.with_name("gate.reached").exists, seconds=20, what="the job is paid for")
    assert fleet.evidence().counted == 1

    switches.pause(fleet.client, (hosts_keys.FLEET,), by="acceptance", reason="")
    gate.touch()
    worker.until_said("job_given_back", jobId=job_ids[0], reason="switch")

    paused = fleet.evidence()
    assert (paused.counted, paused.spans) == (0, ())
    assert [one.decode() for one in fleet.client.lrange("rq:queue:pi-jobs", 0, -1)] == job_ids
    switches.resume_all(fleet.client)
    fleet.until_over(seconds=10)
    assert outcomes(fleet.require_sound()) == {"completed": 2}
