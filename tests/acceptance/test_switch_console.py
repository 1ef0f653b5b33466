"""The kill switch from the browser beside `manage.py stop`, at the same containers of real workers."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from dispatch.pages import operation_store
from tests.dispatch.consolekit import Console, read_until
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import start_all, until

#: A frozen host is not given up meanwhile: its jobs are to be stopped, not failed.
PATIENT = Knobs(timings=replace(QUICK, queue=replace(QUICK.queue, gone=60)))
PAGE = "/admin/switch/"


@pytest.mark.docker
@pytest.mark.django_db(transaction=True)
def test_the_page_stops_proves_and_counts_as_the_command_does(contained, client):
    fleet = contained
    workers = [fleet.worker(name, concurrency=3) for name in ("alpha", "beta")]
    start_all(workers, PATIENT)
    running = [
        fleet.enqueue(fleet.folder(f"{worker.name}-{number}", delay="60"), queue=worker.queue)
        for worker in workers
        for number in range(3)
    ]
    until(lambda: len(fleet.ground.spans()) == 6, seconds=20, what="six jobs run")
    client.force_login(User.objects.create_superuser("ann"))
    # Frozen, so that both see all six before the first is gone.
    for worker in workers:
        worker.freeze()

    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": fleet.url}):
        shown = client.get(f"{PAGE}stop/").content.decode()
        with Console(fleet.home / "shell", fleet.url).running("stop", "--json") as command:
            read_until(command.stderr, "0 of 6")
            operation_id = client.post(f"{PAGE}stop/", {"seconds": "30"}).url.split("/")[-2]
            until(lambda: _read(fleet, operation_id).row_count == 6, seconds=10, what="the page sees six")
            for worker in workers:
                worker.thaw()
            thawed = time.monotonic()
            until(lambda: not _read(fleet, operation_id).is_running, seconds=30, what="the stop has ended")
            seconds = time.monotonic() - thawed
            said, _ = command.communicate(timeout=30)
        text = client.get(f"/admin/operations/{operation_id}/").content.decode()

    found, proof = _read(fleet, operation_id), json.loads(said)
    assert (found.result.is_good, proof["proven"], command.returncode) == (True, True, 0)
    assert found.result.summary == "6 of 6 containers are confirmed gone."
    assert [row.cells for row in found.rows] == [
        (one["host"], one["container"], f"job {one['job']}", "confirmed gone") for one in proof["containers"]
    ]
    assert {row.cells[2] for row in found.rows} == {f"job {job_id}" for job_id in running}
    assert all(row.cells[1] in shown and row.cells[1] in text for row in found.rows)
    assert seconds < 15
    assert {life.job_id for life in fleet.lives() if life.died} == set(running)

    waiting = fleet.enqueue(fleet.folder("later"))
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": fleet.url}):
        time.sleep(0.5)
        assert fleet.statuses([waiting]) == [b"queued"]
        client.post(f"{PAGE}resume/", {})
    fleet.until_over(seconds=20)
    assert outcomes(fleet.require_sound()) == {"completed": 1, "policy/operator-stop": 6}


def _read(fleet, operation_id):
    return operation_store.read(fleet.client, operation_id)
