"""Which queues a command acts on: those that Valkey knows and those that a person names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from hosts import keys, names
from pidispatch_site.errors import ConfigurationError

if TYPE_CHECKING:
    import redis


def known_queues(client: redis.Redis) -> tuple[str, ...]:
    """List every queue ever used, the shared one first; a name that is none of ours is left out."""
    found = names.found_queues(cast("set[bytes]", client.smembers(keys.QUEUES_KNOWN)))
    return names.union((names.SHARED_QUEUE,), found)


def named_queues(given: Sequence[str]) -> tuple[str, ...]:
    """Check the names a person gave, keeping their order; `ConfigurationError` names each wrong one."""
    wrong = [name for name in given if not names.is_queue(name)]
    if wrong:
        raise ConfigurationError(
            *(
                f"{name!r} is no queue; allowed are {names.SHARED_QUEUE} and {names.SHARED_QUEUE}@HOST"
                for name in wrong
            )
        )
    return tuple(dict.fromkeys(given))
