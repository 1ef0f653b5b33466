"""Jobs that want to be paid for at the very moment at which Valkey does not take it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from dispatch.money.windows import grant_key
from tests.harness.fleet import Fleet
from tests.harness.gate import Gate
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.outages import Outage
from tests.harness.valkey_server import ValkeyServer
from tests.harness.worker_process import WorkerProcess, until

# From here on a reading of the clock is too old for the ledger.
_OLD_SECONDS = 1.1
_CHECK = """#!/bin/sh
printf . >>"{gate}.reached"
while [ ! -e "{gate}" ]; do sleep 0.05; done
"""


class Unpaid:
    """Workers of one fleet, with gates at the moments in question, and the server that is afflicted."""

    def __init__(
        self, fleet: Fleet, server: ValkeyServer, *, hosts: int, concurrency: int, knobs: Knobs
    ) -> None:
        self.fleet = fleet
        self._server = server
        self._concurrency = concurrency
        self._said: list[int] = []
        self._popped, self._reserving, self._answered, self._checking = self._gates = tuple(
            Gate(fleet.home / name) for name in ("popped", "reserving", "answered", "checking")
        )
        gates = {
            "after pop": str(self._popped),
            "before reserve": str(self._reserving),
            "after reserve": str(self._answered),
        }
        self._knobs = replace(knobs, gates=gates)
        environment = {
            "PI_DAILY_TOKEN_CAP": "1000000",
            "PI_WAIT_PROFILES": f"ready:{self._check()}",
            # A bound of the whole fleet: each host asks for one of its jobs at once.
            "PI_WAIT_CHECK_SLOTS": str(hosts),
        }
        self._workers: list[WorkerProcess] = [
            fleet.worker(f"host-{number}", concurrency=concurrency, environment=environment)
            for number in range(hosts)
        ]
        for gate in self._gates:
            gate.open()
        for worker in self._workers:
            worker.start(self._knobs, ready=False)
        for worker in self._workers:
            worker.until_said("worker_started", seconds=60)

    def at_the_reservation(self, outage: Outage, *, seconds: float) -> None:
        """Let it happen right before the ledger is asked, by as many jobs as there are slots."""
        self._reserving.close()
        self._answered.close()
        job_ids = self._enqueue(len(self._workers) * self._concurrency)
        self._let_clocks_be_read_anew(job_ids)
        self._meet(outage, self._reserving)
        # Each comes by again, since it was not paid for.
        until(
            lambda: self._nothing_runs(job_ids) and self._reserving.arrived >= 2 * len(job_ids),
            seconds=20,
            what="each has asked in vain",
        )
        self._hold(outage, seconds, job_ids)
        self._heal(outage, job_ids)

    def _let_clocks_be_read_anew(self, job_ids: list[str]) -> None:
        """Have the first asking turned down as too old: it is the next that an answer can be lost of."""
        self._reserving.until_arrived(len(job_ids))
        time.sleep(_OLD_SECONDS)
        self._reserving.open()
        self._answered.until_arrived(len(job_ids))
        self._reserving.close()
        self._answered.open()
        self._reserving.until_arrived(len(job_ids))

    def at_the_wait_check(self, outage: Outage, *, seconds: float) -> None:
        """Let it happen while a check runs, so that the gate of waiting jobs is the first to meet it."""
        self._checking.close()
        self._reserving.close()
        self._reserving.open()
        job_ids = self._enqueue(len(self._workers), wait_for=({"profile": "ready"},))
        self._checking.until_arrived(len(job_ids))
        self._meet(outage, self._checking)
        self._hold(outage, seconds, job_ids)
        assert self._reserving.arrived == 0, "one went on to the money"
        self._heal(outage, job_ids)

    def at_the_token_cap(self, outage: Outage, *, seconds: float) -> None:
        """Let it happen after the pop, so that reading what the day has used is the first to meet it."""
        for worker in self._workers:
            worker.kill()
        self._popped.close()
        self._reserving.close()
        self._reserving.open()
        job_ids = self._enqueue(len(self._workers))
        for worker in self._workers:
            worker.start(self._knobs, ready=False)
        self._popped.until_arrived(len(job_ids))
        self._meet(outage, self._popped)
        self._hold(outage, seconds, job_ids)
        # One that can be read says that tokens are left.
        assert outage.is_readable or self._reserving.arrived == 0, "one went on to the money"
        self._heal(outage, job_ids)

    def _meet(self, outage: Outage, gate: Gate) -> None:
        """Begin it, let them pass, and wait until each worker has met it."""
        self._said = [worker.said_so_far() for worker in self._workers]
        outage.begin(self._server)
        gate.open()
        self._until_each_said("valkey_unreachable")

    def _until_each_said(self, event: str) -> None:
        for worker, so_far in zip(self._workers, self._said, strict=True):
            worker.until_said(event, after=so_far)

    def _hold(self, outage: Outage, seconds: float, job_ids: list[str]) -> None:
        """Let it last, while nothing happens to the jobs."""
        until_then = time.monotonic() + seconds
        until(
            lambda: self._nothing_runs(job_ids) and time.monotonic() > until_then,
            seconds=seconds + 5,
            what="the outage lasts",
        )
        if outage.is_readable:
            client, statuses = self.fleet.client, self.fleet.statuses(job_ids)
            assert set(statuses) == {b"queued"}, statuses
            granted = [job_id for job_id in job_ids if client.exists(grant_key(job_id, 0))]
            assert not granted, granted

    def _heal(self, outage: Outage, job_ids: list[str]) -> None:
        """End it: each job runs, in one container, and each worker has noticed, so that the next is news."""
        outage.end(self._server)
        self.fleet.until_over(job_ids, seconds=60)
        self._until_each_said("valkey_restored")
        lives, failed = self._lives(job_ids), self._failed(job_ids)
        assert lives == dict.fromkeys(job_ids, 1), lives
        assert not failed, failed

    def _nothing_runs(self, job_ids: list[str]) -> bool:
        """Require that none of them has a container or has failed."""
        lives, failed = self._lives(job_ids), self._failed(job_ids)
        assert not lives, lives
        assert not failed, failed
        return True

    def require_sound(self) -> None:
        """Judge everything: each job completed, in one container that is counted once."""
        evidence = self.fleet.require_sound()
        jobs = len(evidence.jobs)
        ended = outcomes(evidence)
        assert ended == {"completed": jobs}, ended
        assert evidence.counted == jobs, evidence.counted
        complaints = self.fleet.complaints()
        assert not complaints, complaints

    def _enqueue(self, count: int, **fields: object) -> list[str]:
        begin = len(self.fleet.job_ids)
        return [
            self.fleet.enqueue(self.fleet.folder(f"folder-{number}"), **fields)
            for number in range(begin, begin + count)
        ]

    def _lives(self, job_ids: list[str]) -> Counter[str]:
        """How many containers each of them has had, by the engine's word."""
        return Counter(life.job_id for life in self.fleet.lives() if life.job_id in job_ids)

    def _failed(self, job_ids: list[str]) -> list[dict[str, object]]:
        found = self.fleet.events("job_failed", "attempt_error", "attempt_fault", "attempt_unsettled")
        return [event for event in found if event["jobId"] in job_ids]

    def _check(self) -> Path:
        path = self.fleet.home / "ready"
        path.write_text(_CHECK.format(gate=self._checking))
        path.chmod(0o755)
        return path
