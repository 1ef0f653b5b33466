"""Jobs that sleep, for every reason there is, by the real clock: as they were, in time, in their place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from dispatch.money.windows import Window, window_end
from dispatch.worker.timings import WorkerTimings
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.operator_ground import EMPTY, OperatorGround, in_seconds, limited
from tests.harness.worker_process import until

KNOBS = Knobs(timings=WorkerTimings(), without_containers=True)
#: The latest that a sleeper may wake.
LATE = 2.0


REASONS = {
    "pause": "pause-window",
    "after": "wait",
    "check": "wait",
    "folder": "scope-busy",
    "cap": "cap",
}


@dataclass(kw_only=True)
class Sleepers:
    """One job that sleeps for each reason, by name, and when those wake that know it."""

    fleet: Fleet
    ids: dict[str, str]
    wakes: dict[str, datetime]

    def fields(self, name: str) -> dict[str, str]:
        found = self.fleet.hash_of(self.ids[name])
        return {key.decode(): value.decode("latin-1") for key, value in found.items()}

    def sleeps_until(self, name: str) -> datetime:
        return datetime.fromtimestamp(int(self.fields(name)["until"]) / 1000, UTC)


@pytest.fixture
def files(fleet: Fleet) -> OperatorGround:
    return OperatorGround(fleet.home / "operator")


def _asleep(
    fleet: Fleet, files: OperatorGround, names: Iterable[str], *, concurrency: int, seconds: float
) -> Sleepers:
    """Put a job to sleep for each of these reasons, for so many seconds where that is known."""
    fleet.until_a_day_has_time_left(30)
    folders = {name: fleet.place(name, delay="0.4") for name in names}
    files.write("limits", limited([folders["cap"]], day=1))
    end = in_seconds(seconds)
    # The worst that rounding up to a whole second can do.
    after = end + timedelta(milliseconds=1)
    files.pause(folders["pause"], to=end)
    files.says(3)
    # A check is asked every 6 s: not as long as it takes, but as often as the shortest of sleeps allows.
    more = {"PI_CAP_ACTION": "park", "PI_WAIT_MAX_MS": "1", "PI_WAIT_CHECK_SLOTS": "4"}
    fleet.worker(concurrency=concurrency, environment={**files.environment, **more}).start(KNOBS)
    fleet.until_over([fleet.enqueue(folders["cap"])], seconds=10)
    if "folder" in folders:
        fleet.ground.order("folder", {"delay": str(seconds)})
        fleet.enqueue(folders["folder"])
    waits = {"after": ({"after": after.isoformat()},), "check": ({"profile": "check"},)}
    ids = {name: fleet.enqueue(folders[name], wait_for=waits.get(name)) for name in names}
    until(
        lambda: set(fleet.statuses(list(ids.values()))) == {b"scheduled"}, seconds=5, what="all of them sleep"
    )
    files.says(0)
    return Sleepers(fleet=fleet, ids=ids, wakes={"pause": end, "after": after})


def _started(fleet: Fleet, job_id: str) -> datetime:
    return datetime.fromisoformat(fleet.record(job_id)["startedAt"])


def _let_go(fleet: Fleet, files: OperatorGround, sleepers: Sleepers) -> dict[str, datetime]:
    """Free the capped one when the paused one has run; when each may go (of a folder it is not known yet)."""
    wakes = {name: sleepers.sleeps_until(name) for name in sleepers.ids}
    fleet.until_over([sleepers.ids["pause"]], seconds=12)
    wakes["cap"] = datetime.now(UTC)
    files.write("limits", EMPTY["limits"])
    return wakes


def test_a_sleeper_is_as_it_was_and_wakes_in_time_and_never_early(fleet, files):
    sleepers = _asleep(fleet, files, REASONS, concurrency=8, seconds=6)
    ids, holder = sleepers.ids, fleet.job_ids[1]
    asleep = {name: sleepers.fields(name) for name in REASONS}

    assert {name: fields["reason"] for name, fields in asleep.items()} == REASONS
    assert {(fields["attempt"], fields["putBacks"]) for fields in asleep.values()} == {("0", "0")}
    assert {name: sleepers.sleeps_until(name) for name in sleepers.wakes} == sleepers.wakes
    # A net only: it looks again within minutes, or when its window turns.
    look = datetime.now(UTC) + timedelta(seconds=WorkerTimings().cap_recheck)
    assert sleepers.sleeps_until("cap") <= min(look, window_end(Window.DAY, datetime.now(UTC)))
    assert {fleet.enqueue_again(job_id) for job_id in ids.values()} == {"scheduled"}
    assert [job for job in fleet.evidence().jobs if job.job_id in ids.values() and job.files] == []
    assert fleet.client.keys("pi-jobs:taken:*") == []

    fleet.ground.order("folder", {"delay": "0"})
    wakes = _let_go(fleet, files, sleepers)
    fleet.until_over(seconds=15)

    wakes["folder"] = datetime.fromisoformat(fleet.record(holder)["endedAt"])
    late = {name: (_started(fleet, ids[name]) - wakes[name]).total_seconds() for name in REASONS}
    assert {name: seconds for name, seconds in late.items() if not 0 <= seconds <= LATE} == {}
    assert [fleet.record(job_id)["attempts"] for job_id in ids.values()] == [[]] * len(ids)
    assert outcomes(fleet.require_sound()) == {"completed": len(fleet.job_ids)}


def test_a_sleeper_goes_before_every_job_that_came_after_it(fleet, files):
    names = [name for name in REASONS if name != "folder"]
    sleepers = _asleep(fleet, files, names, concurrency=1, seconds=4)
    later = [fleet.enqueue(fleet.place(f"later-{number}", delay="0.4")) for number in range(18)]
    wakes = _let_go(fleet, files, sleepers)
    fleet.until_over(seconds=20)

    starts = {job_id: _started(fleet, job_id) for job_id in fleet.job_ids}
    for name, job_id in sleepers.ids.items():
        # One that came later may have been started while it still slept, and none after that.
        due = wakes[name] + timedelta(seconds=LATE)
        overtaken = [starts[other] for other in later if due < starts[other] < starts[job_id]]
        assert overtaken == [], name
        assert [other for other in later if starts[other] > starts[job_id]], f"{name} came last anyhow"
    assert outcomes(fleet.require_sound()) == {"completed": len(fleet.job_ids)}
