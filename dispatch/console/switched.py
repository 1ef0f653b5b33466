"""What `pause` and `resume` say of queues: how many, which could not be found, and how a fault left them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from redis.exceptions import RedisError, ResponseError

from dispatch.console.fleet_words import named
from dispatch.console.queues import KnownQueues
from dispatch.console.server import Server, confirming
from hosts import switches
from pidispatch_site.errors import PidispatchError

if TYPE_CHECKING:
    import redis

#: Names that a person still reads; more are counted.
MOST_NAMED = 8


def counted(queues: Sequence[str]) -> str:
    """Name the queues, with their number when there is more than one."""
    if len(queues) < 2:
        return "".join(queues)
    more = len(queues) - MOST_NAMED
    listed = ", ".join(queues[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{len(queues)} queues: {listed}"


def taken_back(hosts: Sequence[str]) -> str:
    """Say whose requests to stop were taken back, as a sentence behind another; blank: nobody's."""
    return f" Requests to stop that were taken back: {named(hosts, most=MOST_NAMED)}." if hosts else ""


def missing(found: KnownQueues) -> str | None:
    """Say which source of names could not be read; None when all were."""
    if found.gap is None:
        return None
    return f"Not every queue could be looked up ({found.gap}): there may be more than are named here."


@contextmanager
def switching(
    server: Server, done: str, named: Sequence[str], queues: Callable[[], Sequence[str]]
) -> Iterator[None]:
    """Add to a fault what `confirming` does and, where the server refused half-way, how each queue stands.

    `queues` finds those to tell of, when it comes to that.
    """
    try:
        with confirming(server, done, named):
            yield
    except PidispatchError as error:
        stands = _standing(server.client, queues) if isinstance(error.__cause__, ResponseError) else None
        if stands is None:
            raise
        raise type(error)(f"{error}\n{stands}") from error


def _standing(client: redis.Redis, queues: Callable[[], Sequence[str]]) -> str | None:
    """Name every queue that is paused and every one that is not; None when the server does not tell."""
    try:
        held = switches.read(client, queues())
    except RedisError:
        return None
    free = [queue for queue in held.queues if not held.flag(queue)]
    sides = (("Paused now", held.paused_queues), ("not paused", free))
    return "; ".join(f"{side}: {', '.join(which)}" for side, which in sides if which) + "."
