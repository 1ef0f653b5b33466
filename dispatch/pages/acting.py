"""What a POST needs to act on the fleet: who acts, and a server that has a little more time than a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.http import HttpRequest

from dispatch.console.arguments import one_line
from dispatch.console.server import Server, address_of, reached
from dispatch.pages.veil import veiled
from pidispatch_site import server_url

# For one answer of the server, and for all of them: no proxy has given up on the page by then.
_SECONDS = 5.0
_ALL_SECONDS = 30.0


def by(request: HttpRequest) -> str:
    """Name who acts, as it is kept with a switch and shown with it."""
    return f"{one_line(request.user.get_username())} (console)"


@contextmanager
def acting(environment: Mapping[str, str]) -> Iterator[Server]:
    """Reach the configured server; every fault on the way is a PidispatchError, for the page to show.

    What it is shown as has no path in it, so that no message has.

    An answer may be lost: put `console.server.confirming` or `console.switched.switching` inside.
    """
    address = address_of(environment)
    shown = veiled(server_url.shown(address), environment)
    with reached(address, shown=shown, seconds=_SECONDS, all_seconds=_ALL_SECONDS) as server:
        yield server
