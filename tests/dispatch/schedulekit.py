"""What the tests of the schedules' console share: a file, tables as reconcile makes them, jobs and runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from dispatch.console import fleet, schedules, triggers_file
from dispatch.console.schedule_facts import LastRun, Line, Overview
from dispatch.console.triggers_file import TriggersFile
from dispatch.ids import occurrence_id, rq_id
from dispatch.instants import instant_of
from dispatch.queue import keys
from dispatch.queue.new_jobs import CRON
from dispatch.queue.producer import Producer
from dispatch.schedules import keys as schedule_keys
from dispatch.schedules.definition import Schedule
from dispatch.schedules.fingerprint import fingerprint
from dispatch.schedules.table import Table
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import now_ms

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
ALPHA, BRAVO = "pi-jobs@alpha", "pi-jobs@bravo"


def entry(schedule_id: str = "nightly", pattern: str = "* * * * *", **run: Any) -> dict[str, Any]:
    given = {"kind": "local", "folder": "/", "flow": "audit", "task": "look", **run}
    return {"on": {"type": "cron", "id": schedule_id, "pattern": pattern, "tz": "UTC"}, "run": given}


def schedule(schedule_id: str = "nightly", pattern: str = "* * * * *", **run: Any) -> Schedule:
    made = entry(schedule_id, pattern, **run)
    return Schedule(schedule_id, pattern, "UTC", made["run"])


def no_runs(_ids: Iterable[str], _until: int) -> Mapping[str, Sequence[LastRun]] | None:
    return {}


@dataclass
class Bench:
    """A fleet in Valkey and the triggers file of the host alpha; a test puts in what it is about."""

    client: redis.Redis
    folder: Path
    entries: Sequence[Mapping[str, Any]] = ()
    runs: Mapping[str, Sequence[LastRun]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now_ms = now_ms(self.client)

    @property
    def file(self) -> TriggersFile:
        path = self.folder / "triggers.json"
        path.write_text(json.dumps({"triggers": list(self.entries)}))
        return triggers_file.loaded(path, zone="UTC", name="alpha")

    def host(self, name: str = "alpha", **fields: Any) -> None:
        file = self.file
        cron = fingerprint(file.triggers.cron if file.triggers else None, zone=file.zone)
        appear(self.client, name, **{"fpTriggers": file.digest, "fpCron": cron, **fields})

    def install(self, *given: Schedule, queue: str = ALPHA, age_ms: int = 24 * HOUR_MS) -> None:
        """Put them into the table as so long ago."""
        Table(self.client, queue).reconcile(given, now=instant_of(self.now_ms - age_ms))

    def enqueue(self, schedule_id: str, instant_ms: int, *, queue: str = ALPHA) -> bytes:
        """Bring an occurrence into the queue; answers the key of its hash."""
        job_id = occurrence_id(schedule_id, instant=instant_of(instant_ms))
        Producer(self.client).enqueue(queue, job_id, schedule(schedule_id).job(), keeping=CRON)
        return keys.job(rq_id(job_id).encode())

    def look(self, *, upcoming: int = 1, file: TriggersFile | None = None) -> Overview:
        found = fleet.read(self.client)
        return schedules.read(
            self.client, found, file or self.file, lambda _ids, _until: self.runs, upcoming=upcoming
        )

    def line(self, schedule_id: str = "nightly") -> Line:
        (found,) = [one for one in self.look().lines if one.id == schedule_id]
        return found

    def passed(self, minutes: int) -> int:
        """The last whole minute that is more than so many minutes ago."""
        return (self.now_ms // MINUTE_MS - minutes) * MINUTE_MS


def hourly(bench: Bench, *, minutes_ago: int = 20) -> int:
    """Let a schedule of each hour have been due so long ago, on the live host alpha; answers the instant."""
    due = bench.passed(minutes_ago)
    pattern = f"{instant_of(due).minute} * * * *"
    bench.entries = [entry(pattern=pattern)]
    bench.host()
    bench.install(schedule(pattern=pattern))
    bench.client.zadd(schedule_keys.upcoming(ALPHA), {"nightly": due + HOUR_MS})
    return due
