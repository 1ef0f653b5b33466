"""The figures of `status`, as one value (contracts 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dispatch.console.queues import read_queues
from dispatch.queue.counts import Counts, count
from hosts import switches
from hosts.switches import PauseFlag

if TYPE_CHECKING:
    import redis


def read_status(client: redis.Redis) -> dict[str, Any]:
    """Add up all known queues and say which of them are paused, in the shape of `status`'s one line.

    `fleet` says which source of queues' names could not be read and why: what only it names is not counted.
    """
    found = read_queues(client)
    queues = found.names
    held = switches.read(client, queues)
    total = sum(count(client, queues).values(), Counts())
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
        answer["pause"] = _shown(flag)
    if found.gap is not None:
        answer["fleet"] = found.gap
    return answer


def _shown(flag: PauseFlag) -> dict[str, Any]:
    return {"by": flag.by, "reason": flag.reason, "since": flag.since_ms, "until": flag.until_ms}
