"""Writers that edit the operator's files at random while jobs come and the worker is killed."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from dispatch.operator_files import overlay_file
from dispatch.worker.timings import WorkerTimings
from tests.harness.editing import in_place, in_two_strokes, linked, replaced
from tests.harness.evidence import counted_starts
from tests.harness.fleet import Fleet
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.operator_ground import EMPTY, Name, OperatorGround, in_seconds, limited, paused
from tests.harness.worker_process import until
from tests.soak.stage import Clock, stage

#: A wide window around each sleep and each waking makes rare meetings common.
KNOBS = Knobs(
    timings=WorkerTimings(),
    without_containers=True,
    delays={"before put off": 0.03, "after put off": 0.03, "before wake": 0.03, "after promote": 0.03},
)
MANNERS = (in_place, replaced, linked, in_two_strokes)
BAD: dict[Name, tuple[str, ...]] = {
    "windows": ("", "{", "{}", '{"windows": [{"scope": "*", "from": "25:00", "to": "06:00"}]}'),
    "limits": ("", "{", '{"version": 9, "limits": []}', '{"version": 1, "limits": [{"scope": "*"}]}'),
    "settings": ("{", '{"dailyCap": 0}', "[]"),
}
ALLOWED = {"completed", "failed/stalled", "failed/worker-lost", "policy/settings-overlay-invalid"}


def run(*, short: bool) -> dict[str, object]:
    """20 s of it, or four minutes; then what may run runs, the rest sleeps, and all of it ends when freed."""
    seconds, folders = (20, 8) if short else (240, 24)
    clock = Clock()
    with stage(containers=False) as (fleet, _):
        torment = Torment(fleet, folders=folders, jobs=folders * 10)
        fleet.until_a_day_has_time_left(seconds + 240)
        torment.play(seconds)
        torment.require_that_no_version_was_exceeded()
        settled = torment.settle()
        torment.free()
        fleet.until_over(seconds=120)
        ended = outcomes(fleet.require_sound(tidy_seconds=20))
        assert set(ended) <= ALLOWED, ended
        assert "Traceback" not in fleet.complaints(), fleet.complaints()
        return {
            "seconds": clock.seconds,
            "jobs": len(fleet.job_ids),
            "edits": dict(torment.edits),
            "kills": torment.kills,
            "bootsRefused": torment.refused,
            "settledAfter": settled,
            "outcomes": ended,
            "putBacks": len(fleet.events("job_put_back")),
            "told": dict(Counter(one["event"] for one in fleet.events() if "_reload" in one["event"])),
        }


class Torment:
    """A worker, its files, and what is done to both.

    Every version of the windows pauses the folder `never`, every version of the limits lets `once` run once,
    and no settings allow more starts than `cap`, half of the jobs.
    """

    def __init__(self, fleet: Fleet, *, folders: int, jobs: int) -> None:
        self.fleet = fleet
        self.files = OperatorGround(fleet.home / "operator")
        self.cap = jobs // 2
        self.edits: Counter[str] = Counter()
        self.kills = self.refused = 0
        self._chance = random.Random(23)
        self._jobs = jobs
        self._never, self._once = fleet.place("never"), fleet.place("once")
        self._folders = [fleet.place(f"folder-{number}", delay="0.2") for number in range(folders)]
        self._folder_of: dict[str, Path] = {}
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        for name in EMPTY:
            self.files.write(name, self._good(name, self._chance))
        self._worker = fleet.worker(
            concurrency=4,
            daily_cap=self.cap,
            environment={**self.files.environment, "PI_CAP_ACTION": "park"},
        )

    def play(self, seconds: float) -> None:
        """Do it for so long: the writers in threads of their own, jobs and kills here."""
        names: Iterable[Name] = ("windows", "limits", "settings")
        writers = [
            threading.Thread(target=self._write, args=(name, random.Random(number)), daemon=True)
            for number, name in enumerate(names)
        ]
        for writer in writers:
            writer.start()
        deadline, per_second = time.monotonic() + seconds, self._jobs / seconds
        try:
            while time.monotonic() < deadline:
                self._boot()
                self._bring_jobs(self._chance.uniform(3, 6), per_second)
                self._worker.kill()
                self.kills += 1
        finally:
            self._stop.set()
            for writer in writers:
                writer.join(10)
        assert self._errors == []

    def _boot(self) -> None:
        """Start the worker; one that meets a file that does not load says so and ends."""
        while True:
            said = self._worker.said_so_far()
            self._worker.start(KNOBS, ready=False)
            until(
                lambda said=said: (
                    self._worker.returncode is not None
                    or any(one["event"] == "worker_started" for one in self._worker.events(said))
                ),
                seconds=20,
                what="the worker starts, or ends",
            )
            if self._worker.returncode is None:
                return
            assert self._worker.returncode == 2, self._worker.complaint()
            self.refused += 1

    def _bring_jobs(self, seconds: float, per_second: float) -> None:
        until_then = time.monotonic() + seconds
        while time.monotonic() < until_then:
            self._bring_one(self._chance.choice([*self._folders, self._never, self._once]))
            time.sleep(1 / per_second)

    def _bring_one(self, folder: Path) -> None:
        soon = in_seconds(self._chance.uniform(0, 4)) + timedelta(milliseconds=self._chance.randrange(1000))
        waits = ({"after": soon.isoformat()},) if self._chance.random() < 0.2 else None
        self._folder_of[self.fleet.enqueue(folder, wait_for=waits)] = folder

    def _write(self, name: Name, chance: random.Random) -> None:
        path = self.files.paths[name]
        acts: list[Callable[[], None]] = [
            *[lambda: self._edit(name, chance)] * 14,
            *[lambda: chance.choice(MANNERS)(path, chance.choice(BAD[name]))] * 2,
            lambda: path.unlink(missing_ok=True),
            lambda: self._burst(name, chance),
        ]
        try:
            while not self._stop.is_set():
                chance.choice(acts)()
                self.edits[name] += 1
                self._stop.wait(chance.uniform(0.02, 0.6))
        except BaseException as error:  # noqa: BLE001 - a writer that died is the soak's own fault
            self._errors.append(error)

    def _edit(self, name: Name, chance: random.Random) -> None:
        content = self._good(name, chance)
        if name == "settings" and chance.random() < 0.3 and self._loads():
            said = {key: str(value) for key, value in content.items()}
            overlay_file.edit(self.files.paths[name], set=said, unset=[])
            return
        chance.choice(MANNERS)(self.files.paths[name], json.dumps(content))

    def _loads(self) -> bool:
        """Whether the settings load: what `manage.py settings` finds broken it leaves so."""
        try:
            json.loads(self.files.paths["settings"].read_text())["dailyCap"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return True

    def _burst(self, name: Name, chance: random.Random) -> None:
        """Fifty edits within a second."""
        for _ in range(50):
            chance.choice((in_place, replaced, linked))(
                self.files.paths[name], json.dumps(self._good(name, chance))
            )
            self.edits[name] += 1
            time.sleep(0.015)

    def _good(self, name: Name, chance: random.Random) -> Any:
        some = chance.sample(self._folders, chance.randrange(len(self._folders)))
        match name:
            case "windows":
                until_soon = paused(some[::2], to=in_seconds(chance.uniform(1, 6)))["windows"]
                return {"windows": [*paused([self._never, *some[1::2]])["windows"], *until_soon]}
            case "limits":
                rows = [{"scope": str(folder), "day": chance.randrange(1, 12)} for folder in some]
                return {"version": 1, "limits": [{"scope": str(self._once), "day": 1}, *rows]}
            case _:
                return {"dailyCap": chance.randrange(1, self.cap), "concurrency": chance.randrange(1, 7)}

    def require_that_no_version_was_exceeded(self) -> None:
        """What every version said held at every instant, whatever else stood in it or did not load."""
        by_folder = Counter(span.folder for span in self.fleet.ground.spans())
        assert by_folder["never"] == 0
        assert by_folder["once"] <= 1
        assert counted_starts(self.fleet.client)[0] <= self.cap

    def settle(self) -> float:
        """Leave a last version and a worker alone; how long until every job has ended or sleeps rightly."""
        paused_now, limited_now = self._folders[:2], self._folders[2:4]
        self.files.write("windows", paused([self._never, *paused_now]))
        self.files.write("limits", limited([self._once, *limited_now], day=1))
        self.files.write("settings", {"dailyCap": 100_000})
        self._boot()
        began = time.monotonic()
        for folder in [*paused_now, *limited_now, *self._folders[4:6]] * 2:
            self._bring_one(folder)
        reasons = {
            **dict.fromkeys([self._never, *paused_now], b"pause-window"),
            **dict.fromkeys([self._once, *limited_now], b"cap"),
        }
        until(lambda: self._is_right(reasons), seconds=90, what="all that may run has run")
        return round(time.monotonic() - began, 1)

    def _is_right(self, reasons: dict[Path, bytes]) -> bool:
        """Whether every job has ended but those that sleep for the reason that their folder has."""
        sleeping: Counter[bytes] = Counter()
        for job_id, folder in self._folder_of.items():
            fields = self.fleet.hash_of(job_id)
            if fields[b"status"] in {b"finished", b"failed"}:
                continue
            if fields[b"status"] != b"scheduled" or fields[b"reason"] != reasons.get(folder):
                return False
            sleeping[fields[b"reason"]] += 1
        return sleeping.keys() == set(reasons.values())

    def free(self) -> None:
        """Take every bound away."""
        for name, content in EMPTY.items():
            self.files.write(name, {"dailyCap": 100_000} if name == "settings" else content)
