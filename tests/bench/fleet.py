"""Reading a registry of 500 hosts, and pausing 1,000 queues of hosts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any, cast

import redis

from dispatch.console import fleet, fleet_shown
from dispatch.console.findings_shown import marks_for
from hosts import keys as hosts_keys
from hosts import roster
from hosts.names import SHARED_QUEUE, host_queue
from hosts.registry import Registry
from tests.bench.report import report
from tests.bench.server import valkey
from tests.harness.manage import manage
from tests.harness.wire import Wire

HOSTS = 500
QUEUES = 1000
ROUNDS = 60


def bench(keys: tuple[str, ...]) -> None:
    with valkey() as url:
        client = redis.Redis.from_url(url)
        for number in range(HOSTS):
            _register(client, f"host-{number:03}", number)
        wire = Wire(url)
        if {"fleet-rows", "fleet-peer", "fleet-shown", "fleet-trips"} & set(keys):
            _reading(keys, wire.client(), wire)
        if "fleet-pause" in keys:
            _pausing(client, url)
        client.close()


def _reading(keys: tuple[str, ...], client: redis.Redis, wire: Wire) -> None:
    ours, peers, shown = (
        _times(step, client) for step in (roster.read, _by_hand, lambda client: _shown(client))
    )
    wire.sent = 0
    assert len(_shown(client)) > HOSTS
    figures: dict[str, tuple[float, float | None, str | None]] = {
        "fleet-rows": (median(ours), None, _p95(ours)),
        "fleet-peer": (median(ours), median(peers), None),
        "fleet-shown": (median(shown), None, _p95(shown)),
        "fleet-trips": (wire.sent, None, None),
    }
    for key, (figure, peer, note) in figures.items():
        if key in keys:
            report(key, ours=figure, peer=peer, note=note)


def _pausing(client: redis.Redis, url: str) -> None:
    """Name them all, as words of the command, its start included."""
    queues = [host_queue(f"host-{number:04}") for number in range(QUEUES)]
    client.sadd(hosts_keys.QUEUES_KNOWN, *queues)
    environment = {"PATH": os.environ["PATH"], "VALKEY_URL": url, "PI_STATE_DIR": str(Path("/nonexistent"))}
    took = {}
    for words in (("pause", *queues), ("resume",), ("pause",)):
        began = time.perf_counter()
        done = manage(environment, *words)
        took[len(words) > 1, words[0]] = time.perf_counter() - began
        assert done.returncode == 0, done.stderr
    note = f"the whole fleet at once: {took[False, 'pause']:.2f} s, resumed in {took[False, 'resume']:.2f} s"
    report("fleet-pause", ours=took[True, "pause"], peer=None, note=note)


def _register(client: redis.Redis, name: str, number: int) -> None:
    facts = {
        "version": "0.1.0",
        "pid": 4000 + number,
        "image": "pi-job:latest",
        "imageDigest": "sha256:" + f"{number % 3:02x}" * 32,
        "piVersion": "1.0.3",
        "concurrency": 4,
        "slotsUsed": number % 5,
        "caps": "s:default,s:deploy,w:ready",
        "tz": "Europe/Berlin",
        "fpPause": "ab" * 8,
        "fpLimits": "cd" * 8,
        "fpSettings": "ef" * 8,
    }
    Registry(
        client,
        name=name,
        host_id=f"{number:016x}",
        boot=f"{number:016x}-00000000",
        queues=(SHARED_QUEUE, host_queue(name)),
        facts=facts,
    ).register()


def _by_hand(client: redis.Redis) -> list[dict[bytes, bytes]]:
    """Read the rows as anybody would who has no script: the names, then a pipeline of hashes."""
    names = cast("set[bytes]", client.smembers(hosts_keys.HOSTS_LIVE))
    pipeline = client.pipeline(transaction=False)
    for name in sorted(names):
        pipeline.hgetall(hosts_keys.host_row(name.decode()))
    return pipeline.execute()


def _shown(client: redis.Redis) -> list[str]:
    return fleet_shown.lines(fleet.read(client), marks=marks_for("utf-8"))


def _times(step: Callable[[redis.Redis], Any], client: redis.Redis) -> list[float]:
    """Milliseconds of each of many rounds, after one that warms up."""
    step(client)
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        step(client)
        found.append((time.perf_counter() - began) * 1000)
    return found


def _p95(values: list[float]) -> str:
    return f"p95 {quantiles(values, n=20)[-1]:.1f} ms"
