"""Which queues a command acts on: those that any source names, and those that a person does (Q 7.4).

One source is not enough: the row of a live host can be gone for a while, and the queue of a host that is down
must be there to be resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from redis.exceptions import RedisError

from dispatch.queue import keys as queue_keys
from hosts import keys, names, roster
from hosts.faults import token_of
from hosts.rows import Roster, Unreachable
from pidispatch_site.errors import ConfigurationError

if TYPE_CHECKING:
    import redis

REGISTRY = "registry"
# RQ's set names the queues by their lists.
_LIST = queue_keys.queue_keys("").jobs.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQueues:
    """The queues that exist, the shared one first, and every host ever heard of; all names are valid.

    `unread` has the sources that could not be read, each with the fault's token: names may be missing.
    """

    names: tuple[str, ...]
    hosts: tuple[str, ...]
    unread: Mapping[str, str]

    @property
    def gap(self) -> str | None:
        """Which sources could not be read and why, in one line; None when all were."""
        return gap_of(self.unread)


def gap_of(unread: Mapping[str, str]) -> str | None:
    """Say in one line what could not be read and why; None when everything was."""
    return "; ".join(f"{source}: {token}" for source, token in unread.items()) or None


def known_queues(client: redis.Redis) -> tuple[str, ...]:
    """List every queue that any source names, the shared one first; a source that fails names none."""
    return read_queues(client).names


def read_queues(client: redis.Redis) -> KnownQueues:
    """Ask the registry and the sets of queues side by side, so that a slow one costs its own time only.

    Each fails by itself, within the client's timeout, and a name that is none of ours is left out.
    """
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(_registry, client)
        sets = _sets(client)
        registry = asked.result()
    unread = {source: answer for source, answer in sets.items() if isinstance(answer, str)}
    members = (member for answer in sets.values() if not isinstance(answer, str) for member in answer)
    used = names.found_queues(member.removeprefix(_LIST) for member in members)
    hosts = {host for host in map(names.host_of_queue, used) if host is not None}
    routed: tuple[str, ...] = ()
    if isinstance(registry, Unreachable):
        unread = {REGISTRY: registry.reason, **unread}
    else:
        routed = names.routed_queues({"name": row.name, "routes": row.routes} for row in registry.hosts)
        hosts |= {row.name for row in registry.hosts} | {host.name for host in registry.known}
    return KnownQueues(names=names.union(routed, used), hosts=tuple(sorted(hosts)), unread=unread)


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


def _registry(client: redis.Redis) -> Roster | Unreachable:
    try:
        return roster.read(client)
    except RedisError as fault:
        return Unreachable(token_of(fault))


def _sets(client: redis.Redis) -> Mapping[str, Iterable[bytes] | str]:
    """Read both sets of names in one go; for one that cannot be read, the token of its fault."""
    sources = (keys.QUEUES_KNOWN, queue_keys.QUEUES)
    pipeline = client.pipeline(transaction=False)
    for source in sources:
        pipeline.smembers(source)
    try:
        answers = pipeline.execute(raise_on_error=False)
    except RedisError as fault:
        answers = [fault] * len(sources)
    return {
        source: token_of(answer) if isinstance(answer, RedisError) else cast("set[bytes]", answer)
        for source, answer in zip(sources, answers, strict=True)
    }
