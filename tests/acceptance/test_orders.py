"""Orders to whole workers: at a container that is not made yet, and across an outage of Valkey."""

from __future__ import annotations

import pytest

from dispatch.console.cancelling import Fate, cancel
from dispatch.console.stopping import Patience, stop
from dispatch.queue import containers
from hosts import stops, switches
from tests.harness.fleet import Fleet
from tests.harness.gate import Gate
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.worker_process import until


@pytest.mark.docker
def test_what_has_begun_is_stopped_also_before_its_container_is_made(contained):
    fleet = contained
    gate = Gate(fleet.home / "gate")
    worker = fleet.worker(concurrency=3)
    worker.start(Knobs(gates={"before create": str(gate)}), ready=False)
    gate.open()
    running = fleet.enqueue(fleet.folder("running", delay="60"))
    until(lambda: fleet.ground.spans(), seconds=20, what="a container runs")
    gate.close()
    unmade = [fleet.enqueue(fleet.folder(name, delay="60")) for name in ("cancelled", "stopped")]
    gate.until_arrived(2)

    (cancelled,) = cancel(fleet.client, [unmade[0]])
    begun = stop(
        fleet.client, by="test", reason="", tell=lambda found: None, patience=Patience(whole=0, look=0.1)
    )
    until(lambda: fleet.how_many_are_over([running]) == 1, seconds=15, what="the running one is stopped")
    gate.open()
    proven = stop(fleet.client, by="test", reason="", tell=lambda found: None)

    assert (cancelled.fate, cancelled.host) == (Fate.STOPPING, "alpha")
    assert len(begun.unconfirmed) == 3
    assert (proven.is_proven, containers.begun(fleet.client, worker.host_id)) == (True, [])
    fleet.until_over(seconds=10)
    assert fleet.record(unmade[0])["reason"] == "operator-cancel"
    # No container of the two that were not made ever ran.
    assert len(fleet.ground.spans()) == 1
    assert outcomes(fleet.require_sound()) == {"policy/operator-stop": 2, "policy/operator-cancel": 1}


def test_orders_outlive_the_server_and_what_comes_after_them_runs(server):
    server.start()
    with Fleet(server.url) as fleet:
        worker = fleet.worker(concurrency=2)
        worker.start(Knobs(without_containers=True))
        job_ids = [fleet.enqueue(fleet.folder(f"folder-{number}", delay="60")) for number in range(2)]
        for job_id in job_ids:
            fleet.until_status(job_id, "started")

        worker.freeze()
        stops.ask_cancel(fleet.client, job_ids[0], request_id="c1")
        stops.ask(fleet.client, ("alpha",), by="test", reason="", request_id="r1", only="alpha")
        server.kill()
        server.start()
        worker.thaw()
        fleet.until_over(seconds=20)
        switches.undrain(fleet.client, "alpha")
        job_ids.append(fleet.enqueue(fleet.folder("folder-2")))
        fleet.until_over(seconds=20)

        # Both orders concern the first job; the stop is obeyed first.
        assert outcomes(fleet.require_sound()) == {"policy/operator-stop": 2, "completed": 1}
        assert stops.cancel_answers(fleet.client, job_ids[:1]) == {job_ids[0]: "alpha"}
