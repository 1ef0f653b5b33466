"""Ways in which Valkey does not take what it is told, each begun and ended at will."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.harness.valkey_server import ValkeyServer
from tests.harness.worker_process import until


@dataclass(frozen=True, slots=True)
class Outage:
    """One of them; `is_readable` tells whether questions are still answered meanwhile."""

    name: str
    begin: Callable[[ValkeyServer], None]
    end: Callable[[ValkeyServer], None]
    is_readable: bool = False

    def __str__(self) -> str:
        return self.name


def _configure(server: ValkeyServer, **options: str) -> None:
    client = server.client()
    for name, value in options.items():
        client.config_set(name.replace("_", "-"), value)
    client.close()


def _unwritable(server: ValkeyServer) -> None:
    """Let its snapshot fail, after which it takes no more that it could not keep (MISCONF)."""
    _in_the_way(server).mkdir()
    # One that is due some day: without any the server does not care.
    _configure(server, save="86400 1000000")
    client = server.client()
    client.bgsave()
    until(
        lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err",
        seconds=10,
        what="the snapshot has failed",
    )
    client.close()


def _writable(server: ValkeyServer) -> None:
    _configure(server, save="")
    _in_the_way(server).rmdir()


def _in_the_way(server: ValkeyServer) -> Path:
    return server.home / "dump.rdb"


FULL = Outage(
    "full",
    lambda server: _configure(server, maxmemory="1"),
    lambda server: _configure(server, maxmemory="0"),
    is_readable=True,
)
UNWRITABLE = Outage("unwritable", _unwritable, _writable, is_readable=True)
WITHOUT_REPLICAS = Outage(
    "without replicas",
    lambda server: _configure(server, min_replicas_to_write="1"),
    lambda server: _configure(server, min_replicas_to_write="0"),
    is_readable=True,
)
FROZEN = Outage("frozen", ValkeyServer.freeze, ValkeyServer.thaw)
STOPPED = Outage("stopped", ValkeyServer.terminate, ValkeyServer.start)
KILLED = Outage("killed", ValkeyServer.kill, ValkeyServer.start)

OUTAGES = (FULL, UNWRITABLE, WITHOUT_REPLICAS, FROZEN, STOPPED, KILLED)
