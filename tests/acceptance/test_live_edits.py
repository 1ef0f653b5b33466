"""Edits of the operator's files while twenty jobs wait for what stands in them, made in every way."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dispatch.worker.timings import WorkerTimings
from tests.harness.editing import MANNERS, in_place, linked, replaced
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.operator_ground import EMPTY, Name, OperatorGround, limited, paused
from tests.harness.worker_process import WorkerProcess, until

KNOBS = Knobs(timings=WorkerTimings(), without_containers=True)
#: Seconds from an edit to the line that tells of it, and to the start of a job that it frees.
TOLD, STARTED = 1.0, 5.0
LABELS: dict[Name, str] = {"windows": "pause_windows", "limits": "scoped_limits", "settings": "settings"}
#: The starts of a day that the settings allow, all of them used up before.
CAP = 10


def forty_nine_others(path: Path, texts: Sequence[str]) -> None:
    """Edit it for a second, in all manners by turns; a text of nothing is no file."""
    for number, text in zip(range(49), itertools.cycle(texts), strict=False):
        if text:
            (replaced, in_place, linked)[number % 3](path, text)
        else:
            path.unlink(missing_ok=True)
        time.sleep(0.02)


@dataclass
class Ground:
    """One file of a worker with twenty jobs asleep: `content` frees the first so many of `waiting`."""

    fleet: Fleet
    files: OperatorGround
    worker: WorkerProcess
    name: Name
    content: Callable[[int], Any]
    waiting: list[str]
    others: list[str]

    @property
    def path(self) -> Path:
        return self.files.paths[self.name]

    def edit(self, manner: Callable[[Path, str], None], text: str, *, told: str) -> float:
        """Make it, and wait until the worker tells of it; how long that took."""
        said = self.worker.said_so_far()
        manner(self.path, text)
        edited = time.monotonic()
        self.worker.until_said(f"{LABELS[self.name]}_{told}", after=said, seconds=TOLD)
        return time.monotonic() - edited

    def until_free(self, count: int) -> None:
        """Wait until so many have ended, the first ones, and see that the others sleep.

        Of those that one cap holds up, whose turn it is is a race of their threads: any will do.
        """
        free = self.waiting[:count]
        if self.name == "settings":
            until(
                lambda: self.fleet.how_many_are_over(self.waiting) >= count,
                seconds=STARTED,
                what=f"{count} have ended",
            )
            states = zip(self.waiting, self.fleet.statuses(self.waiting), strict=True)
            free = [job_id for job_id, status in states if status == b"finished"]
        self.fleet.until_over(free, seconds=STARTED)
        self.until_asleep([one for one in self.waiting if one not in free] + self.others)

    def until_asleep(self, job_ids: list[str]) -> None:
        asleep = [b"scheduled"] * len(job_ids)
        # All of those that an edit might have freed were woken to look again.
        until(lambda: self.fleet.statuses(job_ids) == asleep, seconds=STARTED, what="they sleep")


@pytest.fixture
def ground(fleet: Fleet, request: pytest.FixtureRequest) -> Ground:
    """Ten jobs that a window holds up, and ten that a cap does: that of their folder, or the fleet's."""
    name: Name = request.param
    files = OperatorGround(fleet.home / "operator")
    quiet = [fleet.place(f"quiet-{number}") for number in range(10)]
    capped = [fleet.place(f"capped-{number}") for number in range(10)]
    files.pause(*quiet)
    if name == "settings":
        files.cap(dailyCap=CAP)
    else:
        files.write("limits", limited(capped, day=1))
    fleet.until_a_day_has_time_left(60)
    more = {"PI_CAP_ACTION": "park"}
    worker = fleet.worker(concurrency=10, daily_cap=1000, environment={**files.environment, **more})
    worker.start(KNOBS)
    fleet.until_over([fleet.enqueue(folder) for folder in capped], seconds=15)
    paused_ids = [fleet.enqueue(folder) for folder in quiet]
    capped_ids = [fleet.enqueue(folder) for folder in capped]
    contents: dict[Name, Callable[[int], Any]] = {
        "windows": lambda free: paused(quiet[free:]),
        "limits": lambda free: limited(capped[free:], day=1),
        "settings": lambda free: {"dailyCap": CAP + free},
    }
    ids = (paused_ids, capped_ids) if name == "windows" else (capped_ids, paused_ids)
    ground = Ground(fleet, files, worker, name, contents[name], *ids)
    ground.until_asleep([*paused_ids, *capped_ids])
    return ground


BAD: dict[Name, str] = {
    "windows": '{"windows": [{"scope": "*", "from": "25:00", "to": "06:00"}]}',
    "limits": '{"version": 1, "limits": [{"scope": "/srv", "day": 0}]}',
    "settings": '{"dailyCap": 0}',
}


@pytest.mark.parametrize("ground", ["windows", "limits", "settings"], indirect=True)
def test_every_edit_is_told_within_a_second_and_frees_whom_it_frees_and_nobody_else(ground):
    fleet = ground.fleet
    took = [ground.edit(replaced, bad, told="reload_invalid") for bad in ('{"windows', BAD[ground.name], "")]
    if ground.name != "settings":
        took.append(ground.edit(lambda path, _: path.unlink(), "", told="reload_invalid"))
    ground.until_free(0)

    for free, manner in enumerate(MANNERS, start=1):
        took.append(ground.edit(manner, json.dumps(ground.content(free)), told="reloaded"))
        ground.until_free(free)

    # Each job reads the settings as they stand: bad ones would refuse it, none would let it go.
    less = [json.dumps(ground.content(free)) for free in (0, 1)]
    more = less if ground.name == "settings" else [*less, BAD[ground.name], ""]
    forty_nine_others(ground.path, more)
    free = len(MANNERS) + 2
    took.append(ground.edit(replaced, json.dumps(ground.content(free)), told="reloaded"))
    ground.until_free(free)

    assert max(took) <= TOLD
    if ground.name == "settings":
        # Without the file the configuration counts.
        ground.edit(lambda path, _: path.unlink(), "", told="reloaded")
        ground.until_free(10)
    for name, content in (("windows", EMPTY["windows"]), ("limits", EMPTY["limits"])):
        ground.files.write(name, content)
    fleet.until_over(seconds=10)
    assert outcomes(fleet.require_sound()) == {"completed": 30}
    assert fleet.complaints() == ""
