"""Clients of Valkey: each with a bounded wait and without silent repeats.

redis-py's own defaults repeat a command up to ten times, also one that counts; a command that timed out may
have been applied all the same. Repeating is therefore the caller's, around a whole compare-and-set step. A
client is safe to share between threads; a process that forks makes its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import redis
from redis._parsers import _RESP2Parser
from redis.backoff import NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.retry import Retry

from pidispatch_site import embedded, server_url
from pidispatch_site.errors import ConfigurationError, OperationalError
from pidispatch_site.places import StateDirectory

POP_MARGIN_SECONDS = 5.0


class ServerRefusesWritesError(ResponseError):
    """The server does not keep what it is told: MISCONF (its disk), NOREPLICAS (too few copies)."""


class ServerBusyError(ResponseError):
    """The server is in the middle of somebody's script that takes too long (BUSY)."""


# The server or the way to it is at fault, and the same command may go through later: what a thread that holds
# a job answers with patience. Everything else that redis-py raises is a mistake of ours.
VALKEY_FAULTS: tuple[type[Exception], ...] = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    OutOfMemoryError,
    ClusterDownError,
    MasterDownError,
    TryAgainError,
    ServerRefusesWritesError,
    ServerBusyError,
)


class _Parser(_RESP2Parser):
    """redis-py's, which knows some more states of a server; without it they look like mistakes of ours."""

    EXCEPTION_CLASSES = {  # noqa: RUF012 - as the base class has it
        **_RESP2Parser.EXCEPTION_CLASSES,
        "MISCONF": ServerRefusesWritesError,
        "NOREPLICAS": ServerRefusesWritesError,
        "BUSY": ServerBusyError,
    }


class _HurriedParser(_Parser):
    """Waits for no answer beyond `ends` (monotonic), and for one no longer than `seconds`.

    It tells its socket so, which it has in every redis-py that requirements.txt allows: that `read_response`
    itself takes a timeout is new in 8.0.
    """

    def __init__(self, *, ends: float, seconds: float, **given: Any) -> None:
        super().__init__(**given)  # type: ignore[no-untyped-call] # redis-py has no types here
        self._ends = ends
        self._seconds = seconds

    def read_response(self, **given: Any) -> Any:  # type: ignore[override] # named ones alone are given
        """Read one; redis-py's TimeoutError when the time for all of them is over."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise redis.exceptions.TimeoutError("the time for all answers is over")
        if self._sock is not None:
            self._sock.settimeout(min(left, self._seconds))
        return super().read_response(**given)


def require_no_eviction(client: redis.Redis) -> None:
    """Refuse a server that throws keys away when it is full; ConfigurationError says how to mend it.

    Counters of caps would begin anew, and jobs would vanish. A server that may not be asked is trusted.
    """
    try:
        policy = client.info("memory").get("maxmemory_policy")
    except NoPermissionError:
        return
    if policy not in (None, "noeviction"):
        raise ConfigurationError(
            f"Valkey throws keys away when it is full (maxmemory-policy is {policy}): spend caps would begin"
            " anew and jobs would vanish. Set maxmemory-policy noeviction on the server."
        )


def state_client(url: str, *, socket_timeout: float = 2.0, all_seconds: float | None = None) -> redis.Redis:
    """Make a client for state: no command waits longer than `socket_timeout` seconds. Answers are bytes.

    With `all_seconds`, counted from now, it waits for all its answers together no longer than that.
    """
    if all_seconds is None:
        return _client(url, socket_timeout)
    ends = time.monotonic() + all_seconds
    return _client(url, socket_timeout, partial(_HurriedParser, ends=ends, seconds=socket_timeout))


def queue_client(url: str, *, socket_timeout: float = 2.0) -> redis.Redis:
    """Make a client for the queue engine, which changes the timeouts of whatever it is given."""
    return _client(url, socket_timeout)


def popper_client(url: str, *, pop_seconds: float) -> redis.Redis:
    """Make a client for blocking pops of at most `pop_seconds`, one per popper.

    It waits longer than the pop itself, so that the server has ended the pop before we give up on it.
    """
    return _client(url, pop_seconds + POP_MARGIN_SECONDS)


def resolve(url: str, state: StateDirectory, *, start: bool, others_seconds: float | None = None) -> str:
    """Tell the address to connect to: `url` itself, or that of the embedded server.

    Only with `start` is that server started; one that lives already gets `others_seconds` to answer. Without,
    `OperationalError` when it is not running. A configured server is never replaced by one of ours: an empty
    second one would have forgotten every spend cap.
    """
    if url != server_url.EMBEDDED:
        return url
    if start:
        return embedded.start(state, others_seconds=others_seconds)
    found = embedded.find(state)
    if found is None:
        raise OperationalError(
            f"The embedded Valkey server of {state.path} is not running; `manage.py runworker` starts it.",
        )
    return found


def _client(url: str, timeout: float, parser: Callable[..., _Parser] = _Parser) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        decode_responses=False,
        # RESP2, whose answers the queue engine was written for.
        protocol=2,
        parser_class=parser,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=timeout,
        socket_connect_timeout=min(timeout, 2.0),
    )
