"""What it costs to decide about one job under 200 pause windows and 200 scoped limits: computing, no waiting.

Every rung of the real ladder is climbed and the money asked for, on files that are really read; what answers
for the engine, the folder and Valkey takes no time. Counted is the thread's processor time, so that a busy
machine changes nothing.

The peer is `json.loads` of the two files: what each start would cost before anything is decided, if they
were read for it. It grows with the files as the decision does and has nothing of ours in it, so that the
ratio means the same on every machine.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import redis

from dispatch.jobs import local_job
from dispatch.ladder import LADDER
from dispatch.money.ledger import Ledger
from dispatch.operator_files import overlay, pause_windows, scoped_limits, zones
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.pause_windows import EVERY_SCOPE, PauseWindow
from dispatch.queue.popper import Claimed
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Pass, climb
from dispatch.waits import conditions
from dispatch.worker.admission import admit
from dispatch.worker.context import begin_context
from dispatch.worker.followed import OperatorFiles
from dispatch.worker.host import Host
from runs.abort import Abort
from runs.outcome import Refusal
from tests.bench.report import report
from tests.dispatch.workerkit import Bench

ROWS, JOBS, RELOADS, READINGS = 200, 3000, 40, 200
#: The clock changes in Europe on the first of these days.
BEGIN, PERIOD = datetime(2026, 10, 25, tzinfo=UTC), timedelta(hours=42)
OVERLAY = b'{"provider": "anthropic", "maxTurns": 40, "dailyCap": 25, "softHoldPct": 80, "concurrency": 4}'
WAIT_FOR = ({"after": "2026-10-24T09:00:00+02:00"}, {"profile": "ci-green"})

_ZONES = (
    *("UTC", "Europe/London", "Europe/Berlin", "Europe/Moscow", "Africa/Cairo", "Africa/Casablanca"),
    *("America/New_York", "America/Denver", "America/Los_Angeles", "America/Santiago", "America/St_Johns"),
    *("America/Sao_Paulo", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Tehran", "Asia/Beirut", "Asia/Tokyo"),
    *("Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham"),
)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def plain_windows() -> dict[str, Any]:
    """Pauses as they are set: an hour or three for everybody now and then, nights and holidays for some."""
    chance = random.Random(3)
    windows = [_window(number, chance) for number in range(ROWS)]
    return {"windows": windows}


def _window(number: int, chance: random.Random) -> dict[str, Any]:
    window: dict[str, Any] = {"scope": folder(number), "tz": _ZONES[number % len(_ZONES)]}
    if number < ROWS // 20:
        begins = chance.randrange(20)
        hours = {"from": f"{begins:02d}:30", "to": f"{begins + chance.randrange(1, 4):02d}:15"}
        return window | hours | {"scope": EVERY_SCOPE, "days": chance.sample(_DAYS, 3)}
    match number % 4:
        case 0:
            return window | {"allDay": True, "dateFrom": "2026-10-24", "dateTo": "2026-10-26"}
        case 1:
            return window | {"from": "22:00", "to": "06:00"}
        case 2:
            return window | {"from": "20:00", "to": "07:30", "days": list(_DAYS[:5])}
        case _:
            dates = {"dateFrom": "2026-01-01", "dateTo": "2027-12-31"}
            return window | {"from": "09:00", "to": "17:00", "days": chance.sample(_DAYS, 4)} | dates


def dense_windows() -> dict[str, Any]:
    """Windows that leave no gap: every job is put off, and its pause followed as far as pauses are."""
    chance = random.Random(5)
    windows = [
        {
            "scope": EVERY_SCOPE if number < ROWS // 2 else folder(number),
            "tz": _ZONES[number % len(_ZONES)],
            "from": f"{chance.randrange(24):02d}:{chance.randrange(60):02d}",
            "to": f"{chance.randrange(24):02d}:{chance.randrange(60):02d}",
        }
        for number in range(ROWS)
    ]
    return {"windows": windows}


def limits() -> dict[str, Any]:
    rows = [
        {"scope": folder(number), "day": 5 + number, "week": 50, "concurrent": 1} for number in range(ROWS)
    ]
    return {"version": 1, "limits": rows}


def folder(number: int) -> str:
    return f"/srv/team-{number % 7}/site-{number}"


class _Nowhere:
    """Answers for Valkey that the day's cap is reached, so that what becomes of the job is decided too."""

    def register_script(self, script: str) -> Callable[..., list[bytes]]:
        del script
        return lambda **_: [b"blocked", b"over-budget", b"day", b"25", b"25"]


@dataclass(slots=True, kw_only=True)
class Deciding:
    """A host that follows two files; `paused` counts the jobs that met a window."""

    host: Host
    windows: LiveFile[tuple[PauseWindow, ...]]
    paused: int = 0

    def milliseconds(self, job: Claimed) -> float:
        """Decide about one job: the time that it took."""
        begun = time.thread_time_ns()
        answer = decide(self.host, job)
        took = time.thread_time_ns() - begun
        self.paused += isinstance(answer, Defer) and answer.reason == WaitReason.PAUSE_WINDOW
        return took / 1e6


def deciding(home: Path, windows: dict[str, Any]) -> Deciding:
    """Write the files and make a host that has read them."""
    paths = home / "pause-windows.json", home / "scoped-limits.json"
    for path, content in zip(paths, (windows, limits()), strict=True):
        path.write_text(json.dumps(content))
    followed = LiveFile(
        paths[0],
        partial(pause_windows.parse, name="pause-windows.json"),
        label="pause_windows",
        count=len,
    )
    limited = LiveFile(
        paths[1],
        partial(scoped_limits.parse, name="scoped-limits.json"),
        label="scoped_limits",
        count=len,
    )
    assert len(followed.load()) == len(limited.load()) == ROWS
    files = OperatorFiles(
        windows=followed, limits=limited, read_overlay=lambda: overlay.parse(OVERLAY, name="settings.json")
    )
    client = redis.Redis(unix_socket_path="/nonexistent/valkey")
    host = replace(Bench(client, files=files).host, ledger=Ledger(cast("redis.Redis", _Nowhere())))
    return Deciding(host=host, windows=followed)


def decide(host: Host, claimed: Claimed) -> Defer | Refusal:
    """Take a job from its claim to where it is put off or refused; nothing is asked of anybody."""
    context = begin_context(host, claimed, cast("Any", claimed.job), Abort())
    conditions.read(WAIT_FOR)
    with ExitStack() as held:
        answer = climb(LADDER, context, held, now=context.now, stop_asked=context.abort.is_set)
        if not isinstance(answer, Pass):
            assert isinstance(answer, Defer), answer
            return answer
        answer = admit(context)
        assert isinstance(answer, Defer | Refusal), answer
        return answer


def jobs(count: int) -> list[Claimed]:
    """So many jobs over the period, each of some folder."""
    chance = random.Random(7)
    return [_job(chance.randrange(ROWS), BEGIN + PERIOD * number / count) for number in range(count)]


def _job(number: int, now: datetime) -> Claimed:
    now_ms = round(now.timestamp() * 1000)
    return Claimed(
        queue="pi-jobs",
        raw_id=b"local-1",
        rq_id="local-1",
        job_id="local-1",
        attempt=0,
        attempts=2,
        put_backs=0,
        first_queued_ms=now_ms,
        attempt_log=(),
        enqueued_at="",
        created_at="",
        scope=None,
        reason=None,
        since_ms=None,
        raw=b"",
        job=local_job(folder(number), task="nothing"),
        token="bench/1",
        now_ms=now_ms,
    )


def peer(home: Path) -> float:
    """Read both files as JSON: milliseconds, the median."""
    contents = [path.read_bytes() for path in sorted(home.glob("*.json"))]
    found = []
    for _ in range(READINGS):
        begun = time.thread_time_ns()
        for content in contents:
            json.loads(content)
        found.append((time.thread_time_ns() - begun) / 1e6)
    return statistics.median(found)


def forget() -> None:
    """Forget what was found out about days and windows, as a new process has not found it out."""
    for module in (zones, pause_windows):
        for found in vars(module).values():
            if hasattr(found, "cache_clear"):
                found.cache_clear()


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def shown(values: Sequence[float]) -> str:
    return f"mean {statistics.fmean(values):.3f}, p95 {p95(values):.3f}, most {max(values):.3f} ms"


def bench(keys: tuple[str, ...]) -> None:
    for key in keys:
        with tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
            forget()
            gc.collect()
            _LINES[key](key, Path(home))


def _decided(windows: dict[str, Any], key: str, home: Path) -> None:
    one = deciding(home, windows)
    took = [one.milliseconds(job) for job in jobs(JOBS)]
    report(key, ours=p95(took), peer=None, note=f"{shown(took)}; {one.paused} of {JOBS} paused")


def _reload(key: str, home: Path) -> None:
    one = deciding(home, plain_windows())
    first, after_boot = [], []
    for job in jobs(RELOADS):
        forget()
        one.windows.load()
        after_boot.append(one.milliseconds(job))
        one.windows.load()
        first.append(one.milliseconds(job))
    report(
        key,
        ours=p95(first),
        peer=None,
        note=f"{shown(first)}; as the first of a process: {shown(after_boot)}",
    )


def _peer(key: str, home: Path) -> None:
    one, asked = deciding(home, plain_windows()), jobs(JOBS)
    took = [one.milliseconds(job) for job in asked]
    report(key, ours=statistics.median(took), peer=peer(home))


_LINES: dict[str, Callable[[str, Path], None]] = {
    "ladder": partial(_decided, plain_windows()),
    "ladder-dense": partial(_decided, dense_windows()),
    "ladder-reload": _reload,
    "ladder-peer": _peer,
}
