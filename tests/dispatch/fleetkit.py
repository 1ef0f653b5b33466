"""What the tests of the fleet's console share: hosts as values, and hosts as they stand in Valkey."""

from __future__ import annotations

import json
from typing import Any

import redis

from dispatch.console.fleet_facts import FleetFacts, QueueLook
from hosts import keys, names
from hosts.rows import HostRow, KnownHost, Roster
from tests.dispatch.queuekit import now_ms

NOW = 1_800_000_000_000
DAY_MS = 86_400_000
SHARED = "pi-jobs"


def host_id(name: str) -> str:
    return (name.encode().hex() + "0" * 16)[:16]


def row(name: str, *, age_ms: int | None = 3000, skew_ms: int = 12, **changes: Any) -> HostRow:
    """A healthy host; `changes` are fields of it."""
    beat = None if age_ms is None else NOW - age_ms
    values: dict[str, Any] = {
        "host_id": host_id(name),
        "beat_at_ms": beat,
        "stale_ms": age_ms,
        "clock_at_ms": None if beat is None else beat + skew_ms,
        "version": "0.1.0",
        "image_digest": "sha256:71ec1b70c8e4" + "a" * 52,
        "pi_version": "1.6.0",
        "concurrency": 4,
        "slots_used": 2,
        "routes": True,
        "caps": frozenset({"w:ci", "s:default"}),
        "tz": "Europe/Berlin",
        **changes,
    }
    return HostRow(name=name, **values)


def queue(name: str, *, age_ms: int | None = 2000, **figures: Any) -> QueueLook:
    """A queue that a worker has taken from so long ago."""
    return QueueLook(name=name, taker_beat_ms=None if age_ms is None else NOW - age_ms, **figures)


def known(name: str, *, age_ms: int, of: str | None = None, **fields: Any) -> KnownHost:
    """A host that was there; `of` another whose host-id it has."""
    return KnownHost(host_id=host_id(of or name), name=name, beat_at_ms=NOW - age_ms, **fields)


def fleet(*hosts: HostRow | KnownHost | QueueLook, roster: Any = None, **changes: Any) -> FleetFacts:
    """A fleet of these; the shared queue and those of the hosts are there, empty and taken from."""
    rows = tuple(one for one in hosts if isinstance(one, HostRow))
    queues = {SHARED: queue(SHARED)} | {
        names.host_queue(one.name): queue(f"pi-jobs@{one.name}") for one in rows
    }
    queues |= {one.name: one for one in hosts if isinstance(one, QueueLook)}
    listed = tuple(one for one in hosts if isinstance(one, KnownHost))
    unreadable = changes.pop("unreadable", ())
    found = roster or Roster(now_ms=NOW, hosts=rows, known=listed, unreadable=unreadable)
    return FleetFacts(now_ms=NOW, roster=found, queues=queues, **changes)


def appear(client: redis.Redis, name: str, *, age_ms: int = 0, skew_ms: int = 0, **fields: Any) -> None:
    """Write a host as its own beats would have: its row, its queue, its beats as a taker, its memory."""
    beat = now_ms(client) - age_ms
    said = {
        "name": name,
        "hostId": host_id(name),
        "beatAt": beat,
        "clockAt": beat + skew_ms,
        "version": "0.1.0",
        "concurrency": 4,
        "slotsUsed": 1,
        "routes": "true",
        "tz": "UTC",
        **fields,
    }
    client.hset(keys.host_row(name), mapping=said)
    client.sadd(keys.HOSTS_LIVE, name)
    client.sadd(keys.QUEUES_KNOWN, SHARED, f"pi-jobs@{name}")
    for taken in (SHARED, f"pi-jobs@{name}"):
        client.zadd(f"takers:{taken}", {f"{host_id(name)}-00000001": beat})
    remember(client, name, age_ms=age_ms, own_id=said["hostId"])


def remember(client: redis.Redis, name: str, *, age_ms: int, own_id: str | None = None) -> None:
    """Let a host be known that was there so long ago."""
    said = json.dumps({"name": name, "beat": now_ms(client) - age_ms})
    client.hset(keys.HOSTS_KNOWN, own_id or host_id(name), said)
