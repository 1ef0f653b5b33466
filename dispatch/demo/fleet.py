"""The demo's fleet: three hosts on one stage, with names, state directories and slots of their own.

They share their operator's files, as hosts do that are set up alike, and one Valkey server.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dispatch.demo import past, sample
from dispatch.demo.flows import FLOWS
from dispatch.demo.stage import Stage
from dispatch.money.windows import (
    COUNTER_TTL,
    GLOBAL_PREFIX,
    Window,
    counter_key,
    scope_prefix,
    token_counter_key,
    window_end,
)
from pidispatch_site import clients, embedded
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory
from runs.record import Record

if TYPE_CHECKING:
    import redis

#: The host whose console is served.
FIRST = next(iter(past.HOSTS))
PAUSED, LIMITED = "docs", "web-shop"
CHECK = "tests-green"

# Wide enough for the busiest day, week and month of the past.
_CAPS = {
    "PI_DAILY_CAP": "150",
    "PI_WEEKLY_CAP": "750",
    "PI_MONTHLY_CAP": "3200",
    "PI_SOFT_HOLD_PCT": "90",
    "PI_DAILY_TOKEN_CAP": "40000000",
}
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Fleet:
    """The hosts by name, and a client of their server."""

    stage: Stage
    hosts: Mapping[str, Stage]
    client: redis.Redis

    def start_workers(self) -> Callable[[], None]:
        """Start every host's worker; what is answered waits until all of them take jobs."""
        started = {name: host.start(name, "runworker") for name, host in self.hosts.items()}

        def until_they_take_jobs() -> None:
            for name, process in started.items():
                self.stage.until_logged(name, "worker_started", process)

        return until_they_take_jobs


def made(stage: Stage, now: datetime) -> Fleet:
    """Write the files, make the repositories, start the server; no worker yet."""
    for name in past.REPOSITORIES:
        sample.make_repository(stage.folder / name, stage.environment, flows=FLOWS)
    url = embedded.start(StateDirectory(stage.state))
    shared = {"VALKEY_URL": url, "PI_CAPTURE_JOB_LOGS": "1", **_CAPS, **_files(stage, now)}
    hosts = {
        name: stage.host(name, {**shared, "PI_CONCURRENCY": str(slots)}) for name, slots in past.HOSTS.items()
    }
    return Fleet(stage, hosts, clients.state_client(url))


def spend(fleet: Fleet, found: Sequence[Record], now: datetime) -> None:
    """Have the counters of the caps say what the past has spent of the windows that `now` is in."""
    limited = past.scopes(str(fleet.stage.folder))[LIMITED]
    for prefix, scope in ((GLOBAL_PREFIX, None), (scope_prefix(limited), limited)):
        for window in Window:
            count = past.starts(found, _begin(window, now), scope)
            _count(fleet, counter_key(prefix, window, now), count, COUNTER_TTL[window])
    used = past.tokens(found, _begin(Window.DAY, now))
    _count(fleet, token_counter_key(GLOBAL_PREFIX, now), used, COUNTER_TTL[Window.DAY])


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until it holds; `OperationalError` that names `what` when it does not come about."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise OperationalError(f"The demo waited {_PATIENCE_SECONDS} s in vain until {what}.")
        time.sleep(0.05)


def _count(fleet: Fleet, key: str, count: int, lifetime: timedelta) -> None:
    fleet.client.set(key, count, ex=lifetime)


def _begin(window: Window, now: datetime) -> datetime:
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match window:
        case Window.DAY:
            return day
        case Window.WEEK:
            return window_end(window, now) - timedelta(days=7)
        case Window.MONTH:
            return day.replace(day=1)


def _files(stage: Stage, now: datetime) -> dict[str, str]:
    """Write the operator's files; by variable, where each is."""
    folder = stage.folder
    check = folder / CHECK
    check.write_text("#!/bin/sh\n# Not yet.\nexit 3\n")
    check.chmod(0o755)
    contents = {
        "PI_TRIGGERS_FILE": ("triggers.json", {"triggers": _triggers(stage)}),
        "PI_PAUSE_WINDOWS_FILE": ("pause-windows.json", {"windows": [_window(stage, now)]}),
        "PI_SCOPED_LIMITS_FILE": (
            "scoped-limits.json",
            {"version": 1, "limits": [{"scope": str(folder / LIMITED), "day": 60, "week": 300}]},
        ),
        "PI_SETTINGS_FILE": ("settings.json", {"maxTurns": 40}),
    }
    for name, content in contents.values():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")
        (folder / name).chmod(0o600)
    return {
        **{variable: str(folder / name) for variable, (name, _) in contents.items()},
        "PI_WAIT_PROFILES": f"{CHECK}:{check}",
    }


def _window(stage: Stage, now: datetime) -> dict[str, object]:
    """Have nothing start in one repository today and tomorrow."""
    days = {"dateFrom": f"{now:%Y-%m-%d}", "dateTo": f"{now + timedelta(days=1):%Y-%m-%d}"}
    return {"scope": str(stage.folder / PAUSED), "allDay": True, **days}


_SCHEDULED = {
    past.AUDIT: ("web-shop", "audit", "Look through what changed since the last run."),
    past.UPDATE: ("billing", "update", "Bring the dependencies up to date."),
}


def _triggers(stage: Stage) -> list[dict[str, object]]:
    return [
        {
            "on": {"type": "cron", "id": schedule, "pattern": _pattern(hours), "tz": "UTC"},
            "run": {"kind": "local", "folder": str(stage.folder / repository), "flow": flow, "task": task},
        }
        for schedule, hours in past.SCHEDULES.items()
        for repository, flow, task in (_SCHEDULED[schedule],)
    ]


def _pattern(hours: Sequence[int]) -> str:
    return f"0 {','.join(map(str, hours))} * * *"
