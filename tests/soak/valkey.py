"""Valkey restarted, killed, frozen, full and cut off, while two hosts work off many jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.valkey_server import ValkeyServer
from tests.harness.worker_process import until
from tests.soak.stage import Clock, stage

#: A beat is old, and an owner gone, long before an outage of 8 s is over: what a live worker survives by
#: waiting, not by luck.
TIMINGS = replace(QUICK, reap_every=3, scope_recheck=2, queue=replace(QUICK.queue, late=3, gone=6))


def run(*, short: bool) -> dict[str, object]:
    """200 jobs on 20 folders of two hosts; no live job may fail."""
    jobs, folders = (50, 10) if short else (200, 20)
    clock = Clock()
    with stage() as (fleet, server):
        workers = [fleet.worker(name, concurrency=2) for name in ("alpha", "beta")]
        for worker in workers:
            worker.start(Knobs(timings=TIMINGS))
        places = [
            fleet.folder(f"folder-{number}", delay=f"{0.5 + number / 10:.1f}") for number in range(folders)
        ]
        # In portions, one before each affliction: however fast the machine is, each meets running jobs.
        portions = [range(jobs)[number :: len(AFFLICTIONS)] for number in range(len(AFFLICTIONS))]
        faults = []
        for afflict, portion in zip(AFFLICTIONS, portions, strict=True):
            for number in portion:
                fleet.enqueue(places[number % folders])
            until(lambda: _some_run(fleet), seconds=30, what="jobs run")
            afflict(server)
            faults.append(afflict.__name__.strip("_"))
        fleet.until_over(seconds=600)
        evidence = fleet.require_sound()
        ended = outcomes(evidence)
        assert ended == {"completed": jobs}, ended
        assert [worker.returncode for worker in workers] == [None, None]
        return {
            "seconds": clock.seconds,
            "jobs": jobs,
            "faults": faults,
            "outcomes": ended,
            "putBacks": len(fleet.events("job_put_back")),
            "outagesTold": len(fleet.events("valkey_unreachable")),
        }


def _some_run(fleet: Fleet) -> bool:
    return b"started" in fleet.statuses(fleet.job_ids)


def _restart(server: ValkeyServer) -> None:
    server.terminate()
    server.start()


def _kill_for_8_s(server: ValkeyServer) -> None:
    server.kill()
    time.sleep(8)
    server.start()


def _pause_for_5_s(server: ValkeyServer) -> None:
    client = server.client()
    client.execute_command("CLIENT", "PAUSE", 5000, "ALL")
    client.close()
    time.sleep(6)


def _freeze_for_5_s(server: ValkeyServer) -> None:
    server.freeze()
    time.sleep(5)
    server.thaw()


def _cut_every_connection(server: ValkeyServer) -> None:
    client = server.client()
    for _ in range(10):
        client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        time.sleep(0.2)
    client.close()


def _forget_scripts(server: ValkeyServer) -> None:
    client = server.client()
    client.script_flush()
    client.close()


def _full_for_5_s(server: ValkeyServer) -> None:
    client = server.client()
    client.config_set("maxmemory", "1")
    time.sleep(5)
    client.config_set("maxmemory", "0")
    client.close()


AFFLICTIONS: tuple[Callable[[ValkeyServer], None], ...] = (
    *(_restart, _kill_for_8_s, _pause_for_5_s, _freeze_for_5_s),
    *(_cut_every_connection, _forget_scripts, _full_for_5_s),
)
