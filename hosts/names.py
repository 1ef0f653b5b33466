"""Names of hosts and of queues: which are valid, whose a queue is, which queues there are (Q 7.2, 7.4).

Rows of the registry and names found in Valkey are written by peers: nothing becomes a queue's name unchecked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pidispatch_site.worker_name import declared, defaulted, in_alphabet

__all__ = [
    "SHARED_QUEUE",
    "declared",
    "defaulted",
    "found_queues",
    "host_of_queue",
    "host_queue",
    "in_alphabet",
    "is_queue",
    "routed_queues",
    "union",
]

SHARED_QUEUE = "pi-jobs"
# Outside the alphabet of names, so that a queue's name comes apart in one way only.
_SEPARATOR = "@"


def host_queue(name: str) -> str:
    """Name the queue that only the worker of this (valid) name drains."""
    if not in_alphabet(name):
        raise ValueError("not a worker name")
    return f"{SHARED_QUEUE}{_SEPARATOR}{name}"


def host_of_queue(queue: str) -> str | None:
    """Name the host whose own queue it is; None for the shared one, and for no queue of ours."""
    return queue.partition(_SEPARATOR)[2] or None if is_queue(queue) else None


def is_queue(name: str) -> bool:
    """Tell whether it is the shared queue or the queue of a validly named host."""
    shared, separator, host = name.partition(_SEPARATOR)
    return shared == SHARED_QUEUE and (not separator or in_alphabet(host))


def routed_queues(rows: Iterable[object]) -> tuple[str, ...]:
    """Name the queues that the registry's rows speak of: shared first, then one per routing host, sorted."""
    hosts = {
        row["name"]
        for row in rows
        if isinstance(row, Mapping) and in_alphabet(row.get("name")) and _routes(row.get("routes"))
    }
    return (SHARED_QUEUE, *sorted(host_queue(name) for name in hosts))


def _routes(value: object) -> bool:
    return value is True or value == "true"


def found_queues(members: Iterable[bytes | str]) -> tuple[str, ...]:
    """Pick the valid queue names out of what a set in Valkey holds, sorted; anything else is dropped."""
    texts = (member.decode("utf-8", "replace") if isinstance(member, bytes) else member for member in members)
    return tuple(sorted({text for text in texts if is_queue(text)}))


def union(registry: Iterable[str] | None, found: Iterable[str] | None) -> tuple[str, ...]:
    """Name the queues that a command on everything acts on, shared first, the rest sorted.

    None stands for a source that could not be read.
    """
    queues = {*(registry or ()), *(found or ())} - {SHARED_QUEUE}
    return (SHARED_QUEUE, *sorted(queues))
