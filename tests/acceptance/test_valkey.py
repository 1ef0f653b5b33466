from __future__ import annotations

import time

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.worker_process import until

KNOBS = Knobs(without_containers=True)


def test_a_worker_that_finds_no_valkey_says_so_once_and_goes_on_when_it_comes(server):
    with Fleet(server.url) as fleet:
        worker = fleet.worker()
        worker.start(KNOBS, ready=False)
        worker.until_said("valkey_unreachable")
        said = worker.said_so_far()
        time.sleep(1.5)
        assert worker.said_so_far() == said
        server.start()
        worker.until_said("worker_started")

        fleet.enqueue(fleet.folder("folder"))
        fleet.until_over(seconds=10)

        assert len(fleet.events("valkey_unreachable")) == len(fleet.events("valkey_restored")) == 1
        assert fleet.complaints() == ""
        fleet.require_sound()


def test_a_job_that_ends_while_valkey_is_away_is_settled_when_it_is_back(server):
    server.start()
    with Fleet(server.url) as fleet:
        worker = fleet.worker(concurrency=2)
        worker.start(KNOBS)
        job_ids = [fleet.enqueue(fleet.folder(f"folder-{number}", delay="1")) for number in range(4)]
        fleet.until_status(job_ids[1], "started")

        server.kill()
        # On a busy machine the first may have ended before, and the third have begun.
        until(
            lambda: len(spans := fleet.ground.spans()) >= 2 and all(span.end for span in spans),
            seconds=10,
            what="the running jobs end",
        )
        time.sleep(1)
        server.start()
        fleet.until_over(seconds=20)

        assert outcomes(fleet.require_sound()) == {"completed": 4}
        worker.until_said("valkey_restored")
        assert len(fleet.events("valkey_unreachable", "valkey_restored")) == 2
        assert fleet.complaints() == ""
