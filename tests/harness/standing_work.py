"""A triggers file as operators write it, and what became of the instants of its schedules."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from dispatch.ids import natural_id, occurrence_id
from dispatch.instants import instant_of
from dispatch.queue import keys
from tests.harness.fleet import Fleet


class TriggersFile:
    """One file; `environment` is what a worker is told of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = itertools.count()
        self.write()

    @property
    def environment(self) -> dict[str, str]:
        return {"PI_TRIGGERS_FILE": str(self.path)}

    def write(self, *entries: Mapping[str, Any]) -> None:
        """Replace it as a careful editor does: a new one, renamed over it."""
        temporary = self.path.with_name(f".{self.path.name}.{next(self._numbers)}")
        temporary.write_text(json.dumps({"triggers": entries}, indent=2) + "\n")
        temporary.replace(self.path)


def cron(
    schedule_id: str, pattern: str, folder: Path, *, tz: str | None = None, **run: Any
) -> dict[str, Any]:
    """Write the entry of a schedule whose jobs do a task in this folder."""
    on = {"type": "cron", "id": schedule_id, "pattern": pattern, **({"tz": tz} if tz else {})}
    work = {} if run.keys() & {"command"} else {"flow": "nightly", "task": "Do as you are told."}
    return {"on": on, "run": {"kind": "local", "folder": str(folder), **work, **run}}


def occurrence(schedule_id: str, instant: datetime) -> str:
    """Name the job of an instant."""
    return occurrence_id(schedule_id, instant=instant)


def known_occurrences(fleet: Fleet, schedule_id: str) -> dict[datetime, str]:
    """Every job of the schedule that the queue knows or a record tells of, by its instant."""
    found = {
        name
        for raw in fleet.client.scan_iter(f"{keys.job(b'repeat').decode()}*", count=1000)
        if (name := natural_id(raw.decode().removeprefix(keys.job(b"").decode())))
    }
    found |= recorded(fleet).keys()
    mine = sorted(name for name in found if name.startswith(f"repeat:{schedule_id}:"))
    return {instant_of(int(name.rpartition(":")[2])): name for name in mine}


def recorded(fleet: Fleet) -> dict[str, list[dict[str, Any]]]:
    """The record files of all hosts, by job."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for worker in fleet.workers.values():
        for path in (worker.state_dir / "logs").glob("*.json"):
            record = json.loads(path.read_text())
            found[record["jobId"]].append(record)
    return found
