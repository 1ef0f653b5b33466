"""Many workers that reach for the last places of one spend window at the same moment.

Every window of both ledgers is limited throughout, so that each counts every start that it concerns; one of
them at a time has few places left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dispatch.instants import instant_of
from dispatch.money.ledger import valkey_now
from dispatch.money.windows import GLOBAL_PREFIX, Window, counter_key, scope_prefix
from runs.workspace.scope import canonical_folder, hash16
from tests.harness.fleet import Fleet
from tests.harness.gate import Gate
from tests.harness.knobs import Knobs
from tests.harness.worker_process import WorkerProcess, until

#: A cap that nobody reaches.
MANY = 100_000
_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS
_SETTINGS: Mapping[Window, str] = {
    Window.DAY: "dailyCap",
    Window.WEEK: "weeklyCap",
    Window.MONTH: "monthlyCap",
}


class Ledger(StrEnum):
    """Whose starts a window counts."""

    FLEET = "fleet"
    SCOPE = "scope"


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the six windows."""

    ledger: Ledger
    window: Window

    def __str__(self) -> str:
        return f"{self.ledger} {self.window}"


@dataclass(frozen=True, slots=True)
class _Refusal:
    event: str
    reason: str


FLEET_KINDS = tuple(Kind(Ledger.FLEET, window) for window in Window)
SCOPE_KINDS = tuple(Kind(Ledger.SCOPE, window) for window in Window)
KINDS = FLEET_KINDS + SCOPE_KINDS
_REFUSALS = {
    Ledger.FLEET: _Refusal("over_budget", "over-budget"),
    Ledger.SCOPE: _Refusal("over_scope_budget", "scope-cap"),
}


class CapRace:
    """Workers of one fleet, before a gate that stands right in front of the reservation."""

    def __init__(self, fleet: Fleet, *, workers: int, concurrency: int) -> None:
        self.fleet = fleet
        self.gate = Gate(fleet.home / "gate")
        self.scope = fleet.folder("scope")
        self._workers = workers
        self._racers = workers * concurrency
        self._settings, self._limits = fleet.home / "settings.json", fleet.home / "scoped-limits.json"
        self._places: list[Path] = []
        self._write(dict.fromkeys(KINDS, MANY))
        environment = {
            "PI_WEEKLY_CAP": str(MANY),
            "PI_MONTHLY_CAP": str(MANY),
            "PI_SETTINGS_FILE": str(self._settings),
            "PI_SCOPED_LIMITS_FILE": str(self._limits),
        }
        self.workers: list[WorkerProcess] = [
            fleet.worker(f"host-{number}", concurrency=concurrency, environment=environment)
            for number in range(workers)
        ]

    def start(self, knobs: Knobs, *, seconds: float) -> None:
        """Start them all at once and wait until each takes jobs."""
        for worker in self.workers:
            worker.start(knobs, ready=False)
        for worker in self.workers:
            worker.until_said("worker_started", seconds=seconds)

    def run(self, kind: Kind, *, places: int, seconds: float) -> None:
        """Let one job a slot (a host, where the folder can have but one) race for so many places of a window.

        AssertionError when more or fewer have a container, by the engine's word, when a counter is not what
        the containers make it, or when a refused job has taken anything.
        """
        self._until_midnight_is_far()
        before = self.counters()
        self._limit(kind, before[kind] + places)
        self.gate.close()
        job_ids = self._enqueue(kind)
        self.gate.until_arrived(len(job_ids), seconds=seconds)
        self.gate.open()
        self.fleet.until_over(job_ids, seconds=seconds)
        self._check(kind, before, places, job_ids)

    def counters(self) -> Mapping[Kind, int]:
        """Read all six windows, those of the scope being the shared folder's."""
        client = self.fleet.client
        now = instant_of(valkey_now(client))
        prefixes = {Ledger.FLEET: GLOBAL_PREFIX, Ledger.SCOPE: scope_prefix(hash16(self._canonical))}
        keys = [counter_key(prefixes[kind.ledger], kind.window, now) for kind in KINDS]
        return {kind: int(client.get(key) or 0) for kind, key in zip(KINDS, keys, strict=True)}

    @property
    def _canonical(self) -> str:
        canonical = canonical_folder(str(self.scope))
        assert canonical is not None
        return canonical

    def _enqueue(self, kind: Kind) -> list[str]:
        if kind.ledger is Ledger.SCOPE:
            return [self.fleet.enqueue(self.scope) for _ in range(self._workers)]
        while len(self._places) < self._racers:
            self._places.append(self.fleet.folder(f"place-{len(self._places)}"))
        return [self.fleet.enqueue(place) for place in self._places]

    def _limit(self, kind: Kind, cap: int) -> None:
        """Set this window's cap, and wait until every worker has read the file that is followed."""
        said = [worker.said_so_far() for worker in self.workers]
        if self._write({**dict.fromkeys(KINDS, MANY), kind: cap}):
            for worker, so_far in zip(self.workers, said, strict=True):
                worker.until_said("scoped_limits_reloaded", after=so_far)

    def _write(self, caps: Mapping[Kind, int]) -> bool:
        """Write both files; whether that of the scopes is another one now."""
        fleet = {_SETTINGS[kind.window]: cap for kind, cap in caps.items() if kind.ledger is Ledger.FLEET}
        scope = {kind.window.value: cap for kind, cap in caps.items() if kind.ledger is Ledger.SCOPE}
        _replace(self._settings, fleet)
        return _replace(self._limits, {"version": 1, "limits": [{"scope": self._canonical, **scope}]})

    def _check(self, kind: Kind, before: Mapping[Kind, int], places: int, job_ids: list[str]) -> None:
        lives = [life for life in self.fleet.lives() if life.job_id in job_ids]
        assert [len(life.started) for life in lives] == [1] * places, lives
        concerned = KINDS if kind.ledger is Ledger.SCOPE else FLEET_KINDS
        expected = {one: count + places * (one in concerned) for one, count in before.items()}
        counters = self.counters()
        assert counters == expected, counters
        ran = {life.job_id for life in lives}
        self._check_records(kind, job_ids, ran)
        event = _REFUSALS[kind.ledger].event
        said = [one for one in self.fleet.events(event) if one["jobId"] in job_ids]
        assert {one["jobId"] for one in said} == set(job_ids) - ran, said
        cap = expected[kind]
        told = {(one["window"], one["reserved"], one["cap"]) for one in said}
        assert told == {(kind.window, cap, cap)}, told

    def _check_records(self, kind: Kind, job_ids: list[str], ran: set[str]) -> None:
        for job_id, record in self.fleet.records(job_ids).items():
            found = record["outcome"], record["reason"], record["budgetReserved"]
            refusal = "policy", _REFUSALS[kind.ledger].reason, False
            assert found == (("completed", None, True) if job_id in ran else refusal), record

    def _until_midnight_is_far(self) -> None:
        """Wait over the turn of the day: a race over it would be one for the places of two windows."""
        client = self.fleet.client
        if _DAY_MS - valkey_now(client) % _DAY_MS < 3 * _MINUTE_MS:
            until(
                lambda: valkey_now(client) % _DAY_MS < _MINUTE_MS,
                seconds=200,
                what="the next day has begun",
            )


def _replace(path: Path, content: object) -> bool:
    """Put this into the file's place, as JSON; false when it stands there already."""
    text = json.dumps(content)
    if path.exists() and path.read_text() == text:
        return False
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o644)
    new.replace(path)
    return True
