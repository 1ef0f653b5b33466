"""The record of a job whose worker vanished."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dispatch.instants import instant_or_none
from dispatch.queue.sweep import Sweeper
from dispatch.worker.attempt import attempt
from dispatch.worker.lost import record_of_lost
from runs.result import RunResult
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench, Fault

NEXT_BOOT = 2


def sweep_at_boot(valkey, bench: Bench) -> None:
    """What the next worker of this host does with what the killed one left."""
    owner = Bench(valkey, boot_number=NEXT_BOOT).host.owner
    sweeper = Sweeper(
        valkey,
        owner,
        in_hand=lambda _: frozenset(),
        record=lambda lost: record_of_lost(bench.host.ledger, lost),
        timings=queuekit.QUICK,
    )
    sweeper.at_boot([queuekit.QUEUE])


class KilledError(BaseException):
    """Ends an attempt as SIGKILL would: nothing is settled after it."""


@pytest.mark.parametrize(
    ("point", "result", "standing", "reserved", "spent"),
    [
        pytest.param("before reserve", None, "queued", None, 0, id="before reserve"),
        pytest.param("after reserve", None, "queued", None, 1, id="reserved"),
        pytest.param("before begin", None, "queued", None, 1, id="before begin"),
        pytest.param("after begin", None, "failed", True, 1, id="begun"),
        pytest.param("before end", None, "failed", True, 1, id="ran"),
        pytest.param(
            "after refund",
            RunResult(container="", never_started=True),
            "failed",
            False,
            0,
            id="paid back and not settled",
        ),
        pytest.param(
            "before again",
            RunResult(container="", exit_code=1),
            "failed",
            True,
            1,
            id="ran and to be tried again",
        ),
    ],
)
def test_a_kill_leaves_what_the_record_then_says(valkey, point, result, standing, reserved, spent):
    bench = Bench(valkey, delays=Fault(point, KilledError()))  # type: ignore[arg-type]
    bench.containers.result = result or bench.containers.result
    bench.enqueue()
    with pytest.raises(KilledError):
        attempt(bench.host, bench.claim())

    sweep_at_boot(valkey, bench)

    assert bench.standing() == standing
    record = bench.record()
    assert (record and record["budgetReserved"]) == reserved
    assert record is None or record["reason"] == "stalled"
    assert bench.spent() == spent


def test_a_job_that_was_killed_after_its_reservation_is_not_charged_twice(valkey):
    bench = Bench(valkey, delays=Fault("before begin", KilledError()))  # type: ignore[arg-type]
    bench.enqueue()
    with pytest.raises(KilledError):
        attempt(bench.host, bench.claim())
    sweep_at_boot(valkey, bench)

    again = Bench(valkey, boot_number=NEXT_BOOT)
    attempt(again.host, again.claim())

    assert again.standing() == "finished"
    assert again.spent() == 1


def test_a_job_that_kills_its_worker_fails_after_its_put_backs_and_says_what_it_cost(valkey):
    bench = Bench(valkey, delays=Fault("before begin", KilledError(), times=99))  # type: ignore[arg-type]
    bench.enqueue()
    for _ in range(6):
        with pytest.raises(KilledError):
            attempt(bench.host, bench.claim())
        sweep_at_boot(valkey, bench)

    assert bench.standing() == "failed"
    assert (bench.record()["reason"], bench.record()["budgetReserved"]) == ("worker-lost", True)
    assert bench.spent() == 1


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"firstQueued": "9999999999999999"}, id="queued after the end of the calendar"),
        pytest.param({"started_at": "9999-12-31T23:59:59.999999-12:00"}, id="started after it"),
        pytest.param({"started_at": "0001-01-01T00:00:00+14:00"}, id="started before its beginning"),
        pytest.param({"data": "\xff", "attemptLog": "{", "host": "\ud7ff"}, id="nonsense"),
        pytest.param({"attempt": "9999999999999999"}, id="more attempts than numbers"),
    ],
)
@pytest.mark.parametrize("begun", [True, False])
def test_no_hash_keeps_the_sweep_from_its_work(valkey, fields, begun):
    bench = Bench(valkey, delays=Fault("after begin" if begun else "before begin", KilledError()))  # type: ignore[arg-type]
    bench.enqueue()
    with pytest.raises(KilledError):
        attempt(bench.host, bench.claim())
    valkey.hset("rq:job:local-1", mapping={**fields, "putBacks": 99})

    sweep_at_boot(valkey, bench)

    assert bench.standing() == "failed"
    assert json.loads(valkey.lindex("records:pending:aaaa", 0))["jobId"] == "local-1"


@pytest.mark.parametrize("epoch_ms", [None, 0, 10**16, -(10**18), 10**30])
def test_what_no_calendar_has_is_no_instant(epoch_ms):
    assert instant_or_none(epoch_ms) is None


def test_a_record_of_a_lost_job_names_the_host_that_had_it(valkey):
    bench = Bench(valkey, delays=Fault("after begin", KilledError()))  # type: ignore[arg-type]
    other = replace(bench.host.owner, host="beta")
    object.__setattr__(bench.host, "transitions", replace(bench.host.transitions, owner=other))
    bench.enqueue()
    with pytest.raises(KilledError):
        attempt(bench.host, bench.claim())

    sweep_at_boot(valkey, bench)

    assert bench.record()["host"] == "alpha"
