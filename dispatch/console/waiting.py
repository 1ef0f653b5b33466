"""Why a queued job is not taken: its queue is paused, or nobody lives who would take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dispatch.queue import keys
from dispatch.queue.timings import Timings
from hosts import switches

if TYPE_CHECKING:
    import redis


def why_it_waits(client: redis.Redis, queue: str) -> str | None:
    """Say what keeps the queue's jobs from being taken; None when it is only their turn that is not yet."""
    held = switches.read(client, (queue,))
    flag = held.flag(queue)
    if flag is not None:
        what = "the whole fleet" if held.fleet else queue
        return f"{what} is paused{_by(flag)}; `manage.py resume` ends that"
    takers = keys.queue_keys(queue).takers
    last = cast("list[tuple[bytes, float]]", client.zrevrange(takers, 0, 0, withscores=True))
    if not last or held.now_ms - last[0][1] > Timings().late * 1000:
        return "no worker is there to take it; start one with `manage.py runworker`"
    return None


def _by(flag: switches.PauseFlag) -> str:
    who = f" by {flag.by}" if flag.by else ""
    return f"{who}: {flag.reason}" if flag.reason else who
