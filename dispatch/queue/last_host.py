"""Who had a waiting job at its last attempt, and which host can write what is to be recorded of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.queue.owner import boot_of
from hosts import roster
from hosts.names import in_alphabet
from hosts.rows import Roster

if TYPE_CHECKING:
    import redis

# A host-id has 16 digits; what stands in a hash may be anything, and becomes the name of a key.
_BOOT = r"([0-9a-f]{1,64})-[0-9a-f]{8}"
# Names of hosts and of queues may have dots; `@` stands only between a queue's name and its host's.
_WORKER_NAME = re.compile(rf"([^@]+)\.{_BOOT}\.[^.@]+(?:@.*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHost:
    """`name` is the worker's, None if it is forgotten; `keeper` the host-id whose list is drained."""

    name: str | None
    keeper: str


def last_host(client: redis.Redis, *, worker_name: str, left: str) -> LastHost | None:
    """Tell the host of the last attempt by two fields of the job's hash; None when neither names any.

    `worker_name` is of the last attempt that began, `left` of whoever let the job go last: that one's own if
    it failed before it began. A list of pending records is drained by its host, or taken over if that has
    vanished and is still known. One that is forgotten has nobody: the host that beat last writes for it.
    """
    if began := _WORKER_NAME.fullmatch(worker_name):
        name, host_id = began.groups()
        name = name if in_alphabet(name) else None
    elif boot := re.fullmatch(_BOOT, boot_of(left)):
        name, host_id = None, boot[1]
    else:
        return None
    found = roster.read(client)
    known = {one.host_id: one for one in found.known} if isinstance(found, Roster) else {}
    if host_id in known:
        return LastHost(name=name or known[host_id].name, keeper=host_id)
    # Without any known host the registry is lost or unreadable: a live host drains its own list all the same.
    heard_last = max(known.values(), key=lambda one: one.beat_at_ms, default=None)
    return LastHost(name=name, keeper=heard_last.host_id if heard_last else host_id)
