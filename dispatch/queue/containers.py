"""Which container names a host's runs began, for `stop`.

An entry stays until the host's engine says that the container is gone, or its own deadline is long over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from dispatch.queue import keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    import redis

# An entry nobody confirmed outlives the container's own deadline by this long.
KEPT_AFTER_DEADLINE_MS = 5 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What began a container: its job, attempt and token, and when it ends itself (epoch ms).

    `deadline_ms` is None, and the others say nothing, when the entry cannot be read.
    """

    name: str
    job_id: str
    attempt: int
    token: str
    deadline_ms: int | None


def begun(client: redis.Redis, host_id: str) -> list[Begun]:
    """List every container that the host began and whose end its engine has not confirmed."""
    entries = cast("dict[bytes, bytes]", client.hgetall(keys.containers(host_id)))
    return sorted((_read(name, value) for name, value in entries.items()), key=lambda one: one.name)


def forget(client: redis.Redis, host_id: str, names: Iterable[str]) -> None:
    """Remove containers that the host's engine says are gone."""
    gone = list(names)
    if gone:
        client.hdel(keys.containers(host_id), *gone)


def outlived(entries: Iterable[Begun], *, now_ms: int) -> list[str]:
    """Name those that must have ended themselves some time ago; `now_ms` by the clock of their host."""
    return [
        one.name
        for one in entries
        if one.deadline_ms is not None and now_ms > one.deadline_ms + KEPT_AFTER_DEADLINE_MS
    ]


def _read(name: bytes, value: bytes) -> Begun:
    try:
        entry = json.loads(value)
        return Begun(
            name=name.decode(),
            job_id=str(entry["job"]),
            attempt=int(entry["attempt"]),
            token=str(entry["token"]),
            deadline_ms=int(entry["deadline"]),
        )
    except (ValueError, KeyError, TypeError):
        # Unreadable is still a container that somebody began.
        return Begun(name=name.decode("utf-8", "replace"), job_id="", attempt=0, token="", deadline_ms=None)
