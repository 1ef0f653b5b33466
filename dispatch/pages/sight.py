"""What one request sees of Valkey: little time for all its questions, and a reason where it sees nothing.

A server that is away, slow, of another kind or full of foreign keys costs a page what stands there and never
the page itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import redis
from redis.exceptions import RedisError

from dispatch.console.server import address_of, explained
from dispatch.doctor.bounded import within
from dispatch.pages.slowness import Slowness
from dispatch.pages.veil import veiled
from pidispatch_site import clients, server_url
from pidispatch_site.errors import PidispatchError

T = TypeVar("T")

#: For everything that one page asks; one answer may take half of it.
SECONDS = 2.0
# What took longer makes the next request ask for a sign of life first, and for that it waits so long.
_LONG_SECONDS = 1.0
_SLOWNESS = Slowness()


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that could not be read; `why` is a sentence for a person, without a path."""

    why: str

    def __bool__(self) -> bool:
        return False


class Sight:
    """The server as one request sees it. After a first fault it asks nothing more: each costs its wait."""

    def __init__(
        self,
        client: redis.Redis | None,
        environment: Mapping[str, str],
        *,
        address: str = "",
        fault: str = "",
    ) -> None:
        self._client = client
        self._environment = environment
        self._address = address
        self._ends = time.monotonic() + SECONDS
        self._fault = veiled(fault, environment)
        self.shown = veiled(server_url.shown(address), environment) if address else ""

    @property
    def fault(self) -> str:
        """Why nothing can be seen (any more), without a path; blank while it can."""
        return self._fault

    def read(self, ask: Callable[[redis.Redis], T]) -> T | Unseen:
        """Answer what `ask` reads, or why it could not be read within the request's time.

        A mistake of ours goes through; so does nothing that a server can do.
        """
        if self._client is None or self._fault:
            return Unseen(self._fault)
        client, began = self._client, time.monotonic()
        if not _SLOWNESS.is_over(self._address, lambda: _is_quick(client)):
            return self._lost(_too_slow(self.shown))
        try:
            return within(max(0.05, self._ends - time.monotonic()), lambda: ask(client))
        except TimeoutError:
            return self._lost(_too_slow(self.shown))
        except RedisError as fault:
            return self._lost(str(explained(fault, self.shown)))
        except PidispatchError as error:
            return self._lost(str(error))
        finally:
            if time.monotonic() - began >= _LONG_SECONDS:
                _SLOWNESS.found(self._address)

    def _lost(self, why: str) -> Unseen:
        self._fault = veiled(why, self._environment)
        return Unseen(self._fault)


@contextmanager
def sight(environment: Mapping[str, str]) -> Iterator[Sight]:
    """Look at the configured server for one request; a configuration that names none is a fault, too."""
    try:
        address = address_of(environment)
    except PidispatchError as error:
        yield Sight(None, environment, fault=str(error))
        return
    client = clients.state_client(address, socket_timeout=SECONDS / 2)
    try:
        yield Sight(client, environment, address=address)
    finally:
        client.close()


def _too_slow(shown: str) -> str:
    return f"Valkey at {shown} answers too slowly for a page."


def _is_quick(client: redis.Redis) -> bool:
    """Tell whether it says anything at all in short time; what it refuses, the page's own question tells."""
    try:
        within(_LONG_SECONDS, client.ping)
    except (TimeoutError, redis.exceptions.TimeoutError):
        return False
    except RedisError:
        return True
    else:
        return True
