"""How often jobs were put off, by reason, since the server began: for metrics, nothing decides by it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from dispatch.queue import keys
from dispatch.queue.entries import number

if TYPE_CHECKING:
    import redis

_REASON = re.compile(r"[a-z0-9-]{1,40}")
_MOST = 33


def read(client: redis.Redis) -> Mapping[str, int]:
    """Answer count by reason; what is no token with a count is left out. Raises what redis-py raises."""
    if client.hlen(keys.PUT_OFFS) > 2 * _MOST:
        return {}
    raw = cast("dict[bytes, bytes]", client.hgetall(keys.PUT_OFFS))
    texts = {
        reason.decode("ascii", "replace"): number(count.decode("ascii", "replace"))
        for reason, count in sorted(raw.items())
    }
    return {
        reason: count for reason, count in texts.items() if _REASON.fullmatch(reason) and count is not None
    }
