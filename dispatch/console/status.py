"""The figures of `status`, as one value (contracts 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dispatch.console.queues import known_queues
from dispatch.queue.counts import Counts, count
from hosts import switches
from hosts.switches import PauseFlag

if TYPE_CHECKING:
    import redis


def read_status(client: redis.Redis) -> dict[str, Any]:
    """Add up all known queues and say which of them are paused, in the shape of `status`'s one line."""
    queues = known_queues(client)
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
    return answer if flag is None else {**answer, "pause": _shown(flag)}


def _shown(flag: PauseFlag) -> dict[str, Any]:
    return {"by": flag.by, "reason": flag.reason, "since": flag.since_ms, "until": flag.until_ms}
