"""The server that a command of the switch acts on; nothing but VALKEY_URL and PI_STATE_DIR counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    InvalidResponse,
    RedisError,
    ResponseError,
)

from pidispatch_site import clients, conf, server_url
from pidispatch_site.errors import ConfigurationError, OperationalError, PidispatchError
from pidispatch_site.places import StateDirectory

if TYPE_CHECKING:
    import redis

# Of a server's own words; the rest may be lines of a script.
_SAID_CHARACTERS = 200
_REPEATED = ", with args beginning with"
_QUOTES = re.compile(r"""'[^']*'?|"[^"]*"?|`[^`]*`?""")
_COMMAND = re.compile(r"['`][A-Za-z|-]{1,30}['`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A client that fails fast, and the address as a person may see it (no credentials)."""

    client: redis.Redis
    shown: str


@contextmanager
def switch_server(environment: Mapping[str, str]) -> Iterator[Server]:
    """Reach the server for a command that stops, resumes or looks; never starts one.

    Faults on the way come out as `explained` puts them.
    """
    with reached(address_of(environment)) as server:
        yield server


def address_of(environment: Mapping[str, str]) -> str:
    """Tell the address of the configured server; PidispatchError where there is none to connect to."""
    url, state_dir = conf.switch_settings(environment)
    return clients.resolve(url, StateDirectory(state_dir or Path("/nonexistent")), start=False)


@contextmanager
def reached(
    address: str, *, shown: str | None = None, seconds: float = 2.0, all_seconds: float | None = None
) -> Iterator[Server]:
    """Use a resolved address; a fault on the way is raised as `explained` puts it.

    `shown` is what the server is called, its address unless told; one answer may take `seconds`, all of them
    together `all_seconds` (None: as long as they take).
    """
    shown = shown or server_url.shown(address)
    client = clients.state_client(address, socket_timeout=seconds, all_seconds=all_seconds)
    try:
        yield Server(client=client, shown=shown)
    except RedisError as fault:
        raise explained(fault, shown) from fault
    finally:
        client.close()


@contextmanager
def confirming(server: Server, done: str, what: Sequence[str], *, told_by: str = "status") -> Iterator[None]:
    """Add to a fault what (nothing: the fleet) is not known to be `done`: an answer may be lost.

    `told_by` is the command that shows it.
    """
    try:
        yield
    except RedisError as fault:
        found = explained(fault, server.shown)
        which = ", ".join(what) or "the whole fleet"
        raise type(found)(
            f"{found}\nNot confirmed as {done}: {which}. `manage.py {told_by}` tells; repeating this is safe."
        ) from fault


def explained(fault: RedisError, shown: str) -> PidispatchError:
    """Say what a fault of redis-py means to a person: nobody, a wrong password, a refusal, no Valkey."""
    kind = type(fault).__name__
    match fault:
        case AuthenticationError() | AuthorizationError():
            return ConfigurationError(f"Valkey at {shown} refused the user or password in VALKEY_URL.")
        case ResponseError():
            said = _without_values(str(fault))[:_SAID_CHARACTERS]
            return OperationalError(f"Valkey at {shown} refused what was asked of it ({kind}: {said}).")
        case InvalidResponse():
            return ConfigurationError(f"What answers at {shown} is no Valkey or Redis. Check VALKEY_URL.")
        case _:
            return OperationalError(
                f"Valkey at {shown} does not answer ({kind}). Check VALKEY_URL and whether the server runs."
            )


def _without_values(said: str) -> str:
    """Take out what a server repeats of a question, which may be of a job: all quotes but of commands."""
    return _QUOTES.sub(
        lambda found: found[0] if "command" in said and _COMMAND.fullmatch(found[0]) else "'…'",
        said.partition(_REPEATED)[0],
    )
