"""What a POST needs to act on the fleet: who acts, and a server that has a little more time than a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from django.http import HttpRequest
from redis.exceptions import RedisError

from dispatch.console.arguments import one_line
from dispatch.console.server import Server, explained
from dispatch.pages.veil import veiled
from pidispatch_site import clients, conf, server_url
from pidispatch_site.places import StateDirectory

_SECONDS = 5.0


def by(request: HttpRequest) -> str:
    """Name who acts, as it is kept with a switch and shown with it."""
    return f"{one_line(request.user.get_username())} (console)"


def address_of(environment: Mapping[str, str]) -> str:
    """Tell the address of the configured server; PidispatchError where there is none to connect to."""
    url, state_dir = conf.switch_settings(environment)
    return clients.resolve(url, StateDirectory(state_dir or Path("/nonexistent")), start=False)


@contextmanager
def acting(environment: Mapping[str, str]) -> Iterator[Server]:
    """Reach the configured server; every fault on the way is a PidispatchError, for the page to show.

    What it is shown as has no path in it, so that no message has.

    An answer may be lost: put `console.server.confirming` or `console.switched.switching` inside.
    """
    address = address_of(environment)
    shown = veiled(server_url.shown(address), environment)
    client = clients.state_client(address, socket_timeout=_SECONDS)
    try:
        yield Server(client=client, shown=shown)
    except RedisError as fault:
        raise explained(fault, shown) from fault
    finally:
        client.close()
