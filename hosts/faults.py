"""What a fault of Valkey is called where only a token may stand: in an event, in what a reader answers."""

from __future__ import annotations

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,  # noqa: A004 - redis-py's name
    NoPermissionError,
    RedisError,
    TimeoutError,  # noqa: A004 - redis-py's name
)


def token_of(fault: Exception) -> str:
    """Name a fault of redis-py: `timeout`, `no-connection`, `not-allowed`, `wrong-type` or `refused`."""
    match fault:
        case AuthenticationError() | AuthorizationError() | NoPermissionError():
            return "not-allowed"
        case TimeoutError():
            return "timeout"
        case ConnectionError():
            return "no-connection"
        case RedisError() if str(fault).startswith("WRONGTYPE"):
            return "wrong-type"
    return "refused"
