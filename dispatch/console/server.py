"""The server that a command of the switch acts on; nothing but VALKEY_URL and PI_STATE_DIR counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pidispatch_site import clients, conf, server_url
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A client that fails fast, and the address as a person may see it (no credentials)."""

    client: redis.Redis
    shown: str


@contextmanager
def switch_server(environment: Mapping[str, str]) -> Iterator[Server]:
    """Reach the server for a command that stops, resumes or looks; never starts one.

    Faults on the way come out as `OperationalError` that names the server.
    """
    url, state_dir = conf.switch_settings(environment)
    address = clients.resolve(url, StateDirectory(state_dir or Path("/nonexistent")), start=False)
    with reached(address) as server:
        yield server


@contextmanager
def reached(address: str) -> Iterator[Server]:
    """Use a resolved address; what Valkey answers badly or not at all is an `OperationalError`."""
    shown = server_url.shown(address)
    client = clients.state_client(address)
    try:
        yield Server(client=client, shown=shown)
    except clients.VALKEY_FAULTS as fault:
        raise OperationalError(
            f"Valkey at {shown} does not answer ({type(fault).__name__})."
            " Check VALKEY_URL and whether the server runs."
        ) from fault
    finally:
        client.close()
