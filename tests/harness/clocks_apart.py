"""Three hosts, of which two have a wrong clock: nothing is decided by a clock, and people are told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from hosts import roster, routing
from hosts.names import host_queue
from hosts.rows import HostRow
from tests.harness import wrong_clock
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.manage import manage
from tests.harness.worker_process import start_all, until

#: How many seconds each is ahead.
OFF: Mapping[str, int] = {"alpha": 300, "beta": -300, "gamma": 0}


def start(fleet: Fleet, knobs: Knobs) -> None:
    """Start the three; the wrong ones have a secret profile that the right one has not."""
    limits = fleet.bound(web=1)
    for name, seconds in OFF.items():
        wrong = (
            {}
            if seconds == 0
            else {**wrong_clock.off_by(seconds), "PI_SECRET_PROFILES": f"deploy:{fleet.home}"}
        )
        fleet.worker(name, concurrency=2, environment={**limits, **wrong})
    start_all(list(fleet.workers.values()), knobs)


def play(fleet: Fleet, *, sleep: float, jobs: int) -> Mapping[str, float]:
    """Have each host wake a job in so many seconds, and so many jobs of one repository taken in turn.

    Answers how late each of the sleepers began.
    """
    fleet.place("web", delay="0.3")
    wakes = (datetime.now(UTC) + timedelta(seconds=sleep)).replace(microsecond=0)
    sleepers = {name: _asleep(fleet, name, wakes) for name in OFF}
    for number in range(jobs):
        # A lease, and something that runs: who went by his own clock would take both from the others.
        name = list(OFF)[number % 3]
        fleet.enqueue_forge("web", queue=host_queue(name))
        fleet.enqueue(fleet.place(f"{name}-runs-{number}", delay="0.5"), queue=host_queue(name))
    fleet.until_over(list(sleepers.values()), seconds=sleep + 20)
    late = {name: _began(fleet, f"{name}-sleeps") - wakes.timestamp() for name in OFF}
    # The journals tell hundredths.
    assert all(-0.02 <= seconds < 10 for seconds in late.values()), late
    fleet.until_over(seconds=10 + jobs)
    assert outcomes(fleet.require_sound()) == {"completed": len(fleet.job_ids)}
    assert fleet.events("job_put_back", "transition_lost") == []
    return {name: round(seconds, 2) for name, seconds in late.items()}


def require_seen(fleet: Fleet) -> None:
    """By the registry all are equally young, none is preferred, and `doctor` names the wrong ones."""
    rows = _rows(fleet)
    assert {name: round((row.skew_ms or 0) / 1000) for name, row in rows.items()} == OFF
    chosen = {routing.route(rows.values(), {"s:deploy"}, f"local-{number}") for number in range(20)}
    assert chosen == {"alpha", "beta"}
    doctor = manage({"VALKEY_URL": fleet.url, "PI_STATE_DIR": str(fleet.home)}, "doctor")
    told = [line for line in doctor.stdout.splitlines() if "clock" in line]
    assert [name for name in OFF if any(name in line for line in told)] == ["alpha", "beta"], doctor.stdout

    # Frozen, the fast one grows as old as anybody would.
    fleet.workers["alpha"].freeze()
    until(lambda: (_rows(fleet)["alpha"].stale_ms or 0) > 2000, seconds=20, what="alpha's beat is old")
    assert (_rows(fleet)["beta"].stale_ms or 0) < 2000
    fleet.workers["alpha"].thaw()


def _asleep(fleet: Fleet, name: str, wakes: datetime) -> str:
    folder = fleet.place(f"{name}-sleeps")
    return fleet.enqueue(folder, queue=host_queue(name), wait_for=({"after": wakes.isoformat()},))


def _began(fleet: Fleet, folder: str) -> float:
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return next(span.begin for span in fleet.ground.spans() if span.folder == folder) + booted


def _rows(fleet: Fleet) -> Mapping[str, HostRow]:
    found = roster.read(fleet.client)
    assert not isinstance(found, roster.Unreachable), found
    return {row.name: row for row in found.hosts}
