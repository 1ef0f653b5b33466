"""The figures of `status`, as one value (contracts 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from dispatch.console.pause_shown import as_data
from dispatch.console.queues import gap_of, read_queues
from dispatch.queue.counts import Counts, count
from hosts import switches
from hosts.faults import token_of

if TYPE_CHECKING:
    import redis


def read_status(client: redis.Redis) -> dict[str, Any]:
    """Add up all known queues and say which of them are paused, in the shape of `status`'s one line.

    `fleet` says which source of queues' names, or which queue, could not be read and why: what only it names,
    or what stands there, is not counted.
    """
    found = read_queues(client)
    queues = found.names
    held = switches.read(client, queues)
    counts = count(client, queues)
    unread = {queue: token_of(one) for queue, one in counts.items() if isinstance(one, ResponseError)}
    gap = gap_of({**found.unread, **unread})
    total = sum((one for one in counts.values() if isinstance(one, Counts)), Counts())
    flag = next((held.flag(queue) for queue in queues if held.flag(queue)), None)
    answer: dict[str, Any] = {"pausedState": held.all_paused}
    if held.partly_paused:
        answer |= {"pausedPartial": True, "pausedQueues": list(held.paused_queues)}
    answer |= {
        "waiting": total.waiting,
        "active": total.active,
        "paused": total.paused,
        "delayed": total.delayed,
        "failed": total.failed,
    }
    if flag is not None:
        answer["pause"] = as_data(flag)
    if gap is not None:
        answer["fleet"] = gap
    return answer
