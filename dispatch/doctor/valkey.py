"""Checks of the server: whether it answers and keeps what it is told, and of this machine's clock by its."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import NoPermissionError

from dispatch.console.findings import Area, Finding
from dispatch.console.fleet_words import skew_words
from dispatch.money.ledger import valkey_now
from hosts.rows import SKEW_TOLD_MS

if TYPE_CHECKING:
    import redis

AREA = Area("valkey")
# The pop of a job is BLMOVE.
_LEAST = (6, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What the server said: its `INFO` (None: this user may not ask), how far our clock is ahead of its."""

    info: Mapping[str, Any] | None
    skew_ms: int


def ask(client: redis.Redis) -> ServerFacts:
    """Ask the server; raises what redis-py raises."""
    before_ms = _local_ms()
    server_ms = valkey_now(client)
    # Half way of the question, which may have been under way for long.
    skew_ms = (before_ms + _local_ms()) // 2 - server_ms
    try:
        return ServerFacts(info=client.info(), skew_ms=skew_ms)
    except NoPermissionError:
        return ServerFacts(info=None, skew_ms=skew_ms)


def judge(facts: ServerFacts, *, shown: str) -> Iterator[Finding]:
    """Judge what the server said; `shown` is its address without credentials."""
    yield AREA.ok("reachable", f"the server at {shown} answers")
    if facts.info is None:
        yield AREA.warning(
            "info",
            "this user may not ask the server about itself (INFO): persistence and eviction are unknown",
            "Give the user of VALKEY_URL the right to INFO, or look after both yourself: appendonly yes,"
            " maxmemory-policy noeviction.",
        )
    else:
        yield _version(facts.info)
        yield _eviction(facts.info)
        yield from _persistence(facts.info)
    if abs(facts.skew_ms) > SKEW_TOLD_MS:
        yield AREA.warning(
            "clock",
            f"the clock of this machine is {skew_words(facts.skew_ms)} Valkey's",
            "Set the clock, by NTP for example: the instants in records are wrong.",
        )


def _version(info: Mapping[str, Any]) -> Finding:
    product = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version") or info.get("redis_version") or "of an unknown version")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers and numbers < _LEAST:
        return AREA.failed("version", f"{product} {version} is too old", "Use Valkey, or Redis from 6.2 on.")
    return AREA.ok("version", f"{product} {version}")


def _eviction(info: Mapping[str, Any]) -> Finding:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return AREA.failed(
            "eviction",
            f"the server throws keys away when it is full (maxmemory-policy {policy}): caps would begin anew"
            " and jobs vanish",
            "Set maxmemory-policy noeviction on the server.",
        )
    return AREA.ok("eviction", "a full server refuses instead of throwing keys away (noeviction)")


def _persistence(info: Mapping[str, Any]) -> Iterator[Finding]:
    if info.get("role") == "slave":
        yield AREA.failed("role", "the server is a replica and takes no writes", "Name the primary.")
    broken = [name for name in _LAST_WRITES if info.get(name, "ok") != "ok"]
    if broken:
        yield AREA.failed(
            "disk",
            f"the server could not write its files ({', '.join(broken)}) and may refuse every command",
            "Look at its log and the disk it writes to.",
        )
    if info.get("aof_enabled") == 1:
        yield AREA.ok("persistence", "what the server is told survives its restart (appendonly)")
    else:
        yield AREA.warning(
            "persistence",
            "the server keeps no append-only file: its restart loses jobs, and what was counted against caps",
            "Set appendonly yes: `CONFIG SET appendonly yes`, and in its configuration file.",
        )


_LAST_WRITES = ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")


def _local_ms() -> int:
    return time.time_ns() // 1_000_000
