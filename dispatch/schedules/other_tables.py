"""What a host has left in the tables of other queues, when its name has changed (Q 18, rows 17 and 18).

Each host notes by its host-id, which a new name does not change, which table is its own: so it finds the
others also when it was stopped before it could tidy up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import cast

import redis
from redis.exceptions import ResponseError

from dispatch.queue.owner import Owner
from dispatch.schedules import remembered
from dispatch.schedules.changes import Seen
from dispatch.schedules.keys import PREFIX
from dispatch.schedules.table import Table
from hosts.names import SHARED_QUEUE, is_queue
from hosts.rows import HostRow, Presence
from pidispatch_site import log

# Hash of queue to the id of the host that has last put schedules there.
OWNERS = f"{PREFIX}owners"


class OtherTables:
    """The tables of one host but for that of `queue`, where its schedules belong.

    Raises what `Table` raises.
    """

    def __init__(self, client: redis.Redis, owner: Owner, queue: str) -> None:
        self._client = client
        self._owner = owner
        self._queue = queue
        self._has_double = self._has_keeper = self._is_blind = False

    @property
    def are_left(self) -> bool:
        """Whether some have to wait: for a copy of this host, or one without a name, to be gone, or seen."""
        return self._has_double or self._has_keeper or self._is_blind

    def are_free(self, rows: Collection[HostRow] | None) -> bool:
        """Whether one of those that have to wait need not do so any longer."""
        if rows is None:
            return False
        return (
            self._is_blind
            or (self._has_double and not _has_double(rows, self._owner))
            or (self._has_keeper and not _has_keeper(rows, self._owner))
        )

    def claim(self) -> None:
        """Note that the table of our queue is ours; before anything is put there."""
        self._client.hset(OWNERS, self._queue, self._owner.host_id)

    def before(self) -> list[Seen]:
        """Read the tables that our schedules may have been in; one that cannot be read is left out."""
        found = []
        for queue in sorted({*self._former(), SHARED_QUEUE} - {self._queue}):
            with suppress(ResponseError):
                found.append(remembered.read(self._client, queue, with_fired=True))
        return found

    def tidy(self, rows: Collection[HostRow] | None, own_ids: Iterable[str]) -> tuple[str, ...]:
        """Empty the tables that were ours, and take our schedules out of the shared one; the ids that left.

        `rows` are the registry's; None: nobody knows who is there, and all stays as it is. So does the shared
        table while a host without a name keeps it.
        """
        self._is_blind = rows is None
        if rows is None:
            return ()
        self._has_keeper = self._queue != SHARED_QUEUE and _has_keeper(rows, self._owner)
        kept = {self._queue, *([SHARED_QUEUE] if self._has_keeper else [])}
        former = [queue for queue in self._former() if queue not in kept]
        removed: list[str] = []
        if SHARED_QUEUE not in kept:
            removed += Table(self._client, SHARED_QUEUE).remove(own_ids)
        self._has_double = bool(former) and _has_double(rows, self._owner)
        for queue in [] if self._has_double else former:
            table = Table(self._client, queue)
            removed += table.clear()
            # It stays ours while it remembers jobs, for the day on which we have that name again.
            if not table.remembers():
                self._client.hdel(OWNERS, queue)
        for schedule_id in removed:
            log.event("scheduler_removed_orphan", schedulerId=schedule_id)
        return tuple(removed)

    def _former(self) -> Iterable[str]:
        noted = cast("dict[bytes, bytes]", self._client.hgetall(OWNERS))
        ours = self._owner.host_id.encode()
        names = (name.decode("utf-8", "replace") for name, host_id in noted.items() if host_id == ours)
        return sorted(filter(is_queue, names))


def _has_keeper(rows: Iterable[HostRow], owner: Owner) -> bool:
    """Whether another host without a name has schedules: its table is the shared one."""
    return any(row.fp_cron and not row.routes and row.host_id != owner.host_id for row in _present(rows))


def _has_double(rows: Iterable[HostRow], owner: Owner) -> bool:
    """Whether another boot of our host-id may live: that of a copy, or our own until we were killed."""
    return any(row.host_id == owner.host_id and row.boot != owner.boot for row in _present(rows))


def _present(rows: Iterable[HostRow]) -> Iterable[HostRow]:
    return (row for row in rows if row.presence is not Presence.GONE)
