"""2,000 schedules in one file: taking it over, bringing a queue's table in line, a tick with nothing due.

The peers do by hand what anybody would: read the JSON and have croniter read each pattern; write definitions
and next instants (croniter's) in one pipeline; ask for the time and for what is due.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import redis
from croniter import croniter

from dispatch.instants import epoch_ms, instant_of
from dispatch.money.ledger import valkey_now
from dispatch.operator_files import zones
from dispatch.schedules import expanding, stretches
from dispatch.schedules.placement import Placed, place
from dispatch.schedules.table import Table
from dispatch.schedules.ticker import Ticker
from dispatch.triggers.parse import parse
from hosts.names import SHARED_QUEUE
from tests.bench.report import report
from tests.bench.server import valkey
from tests.harness.wire import Wire

SCHEDULES = 2000
#: So often what takes long is done, and what takes no time.
ROUNDS, TICKS = 5, 300

#: Of each but a few there are hundreds that differ in their minute or hour.
_PATTERNS = (
    *(
        "{m} * * * *",
        "H {h} * * mon-fri",
        "H H(0-5) * * *",
        "{m} {h} * * *",
        "{m} 2 * * sun",
        "{m} {h} L * *",
    ),
    *("{m} {h} * * fri#2", "@hourly", "{m} {h} 29 2 *", "{m} */2 1-15 * *", "{m} */10 * * * *"),
)
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", None)


def content(home: Path) -> bytes:
    """Write the file: all patterns and zones in turn."""
    entries = [_entry(number, home) for number in range(SCHEDULES)]
    return json.dumps({"triggers": entries}, indent=2).encode()


def _entry(number: int, home: Path) -> dict[str, Any]:
    zone = _ZONES[number % len(_ZONES)]
    pattern = _PATTERNS[number % len(_PATTERNS)].format(m=number * 7 % 60, h=number * 5 % 24)
    on = {"type": "cron", "id": f"site-{number}", "pattern": pattern}
    run = {
        "kind": "local",
        "folder": str(home),
        "flow": "audit",
        "task": f"Look through what changed in part {number} since the last run, and say what is wrong.",
    }
    return {"on": {**on, "tz": zone} if zone else on, "run": run}


def load(text: bytes) -> Placed:
    """Take the file over, as a worker does that has just been started."""
    forget()
    return place(parse(text, name="triggers.json"), fleet_mode=False, host_zone="UTC", name="triggers.json")


def forget() -> None:
    """Forget what was found out about patterns and zones."""
    for module in (expanding, stretches, zones):
        for found in vars(module).values():
            if hasattr(found, "cache_clear"):
                found.cache_clear()


def peer_load(text: bytes) -> list[croniter]:
    """Read the file and its patterns as nobody checks them."""
    rows = json.loads(text)["triggers"]
    return [croniter(row["on"]["pattern"], hash_id=row["on"]["id"]) for row in rows]


def bench(keys: tuple[str, ...]) -> None:
    with valkey() as url, tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
        wire = Wire(url)
        figures = measure(wire, content(Path(home)))
        for key in keys:
            report(key, **figures[key])


def measure(wire: Wire, text: bytes) -> dict[str, dict[str, Any]]:
    """Do all of it; what each line is to say."""
    client = wire.client()
    placed = load(text)
    assert len(placed.served) == SCHEDULES
    loaded, by_hand = _seconds(lambda: load(text), ROUNDS), _seconds(lambda: peer_load(text), ROUNDS)
    installed, changed, written = _reconciling(client, placed, text)
    ticks, asks, trips = _ticking(client, wire)
    return {
        "schedules-load": {"ours": loaded, "peer": None},
        "schedules-load-peer": {"ours": loaded, "peer": by_hand},
        "schedules-reconcile": {
            "ours": installed,
            "peer": None,
            "note": f"of one that changed: {changed:.3f} s",
        },
        "schedules-reconcile-peer": {"ours": installed, "peer": written},
        "schedules-tick": {"ours": ticks, "peer": None},
        "schedules-tick-peer": {"ours": ticks, "peer": asks},
        "schedules-trips": {"ours": trips, "peer": None},
    }


def _reconciling(client: redis.Redis, placed: Placed, text: bytes) -> tuple[float, float, float]:
    """Install all in an empty table, then again with one more; and the peer."""
    table, now = Table(client, SHARED_QUEUE), instant_of(valkey_now(client))
    took, again = [], []
    for _ in range(ROUNDS):
        client.flushall()
        forget()
        took.append(_seconds(lambda: table.reconcile(placed.served, now=now), 1))
        client.hdel("sched:pi-jobs:def", "site-0")
        again.append(_seconds(lambda: table.reconcile(placed.served, now=now), 1))
        assert len(table.resident()) == SCHEDULES
    rows = json.loads(text)["triggers"]
    return median(took), median(again), _seconds(lambda: _write_by_hand(client, rows, now), ROUNDS)


def _write_by_hand(client: redis.Redis, rows: list[dict[str, Any]], now: datetime) -> None:
    pipeline = client.pipeline()
    for row in rows:
        on = row["on"]
        following = croniter(on["pattern"], now, hash_id=on["id"]).get_next(datetime)
        pipeline.hset("peer:def", on["id"], json.dumps(row, sort_keys=True))
        pipeline.zadd("peer:next", {on["id"]: epoch_ms(following.astimezone(UTC))})
    pipeline.execute()


def _ticking(client: redis.Redis, wire: Wire) -> tuple[float, float, float]:
    """Milliseconds of a tick and of asking by hand, and the round trips of a tick; nothing is due."""
    an_hour_ago = lambda: valkey_now(client) - 3_600_000  # noqa: E731
    ticker = Ticker(client, (SHARED_QUEUE,), clock_ms=an_hour_ago)
    assert ticker.tick() == ()
    wire.sent = 0
    assert ticker.tick() == ()
    trips = wire.sent
    by_hand = lambda: client.zrangebyscore("peer:next", "-inf", an_hour_ago())  # noqa: E731
    return _seconds(ticker.tick, TICKS) * 1000, _seconds(by_hand, TICKS) * 1000, trips


def _seconds(step: Callable[[], object], rounds: int) -> float:
    """The median of so many rounds."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        step()
        found.append(time.perf_counter() - began)
    return median(found)
