"""What a worker does for the fleet besides its jobs: it shows itself, hears orders, looks after others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from dispatch.leases.boot_sweep import sweep_scopes
from dispatch.queue.containers import forget_vanished
from dispatch.queue.suspects import suspects
from dispatch.worker.host import Host
from dispatch.worker.orders import Orders
from hosts import keys, roster
from hosts.names import found_queues
from hosts.registry import Registry
from hosts.rows import Roster
from runs.inheritance import take_over
from runs.reaper import Reaped

if TYPE_CHECKING:
    import redis


@dataclass(slots=True, kw_only=True)
class Duties:
    """The fleet's part of one worker. `inherited` is rung when records of a vanished host came over."""

    host: Host
    registry: Registry
    orders: Orders
    inherited: Callable[[], object]
    _has_tried: bool = False
    _has_swept: bool = False

    def enter(self) -> None:
        """Show ourselves; OperationalError when another machine bears our name. Raises VALKEY_FAULTS."""
        self.registry.register()

    def free_claims(self, reaped: Reaped) -> None:
        """Free what older boots of ours have leased, once the engine has said what still runs.

        That it has not is said at the first call alone.
        """
        leases = self.host.leases
        if leases is None or self._has_swept or (self._has_tried and not reaped.enumerated):
            return
        sweep_scopes(leases, reaped, self.host.rules.scoped_limits())
        self._has_tried, self._has_swept = True, reaped.enumerated

    def queues_to_sweep(self) -> Sequence[str]:
        """Name our queues, and those of others whose jobs nobody alive has. Raises VALKEY_FAULTS."""
        own = self.host.queues
        others = [name for name in _known(self.host.client) if name not in own]
        return (*own, *suspects(self.host.client, others, late=self.host.timings.queue.late))

    def look_after_others(self) -> None:
        """Take over the records that vanished hosts left unwritten, and forget containers that ended there.

        Raises redis-py's errors.
        """
        host = self.host
        vanished_ms = round(host.timings.vanished * 1000)
        while take_over(host.client, host.owner.host_id, vanished_ms=vanished_ms):
            self.inherited()
        seen = roster.read(host.client)
        if isinstance(seen, Roster):
            vanished = [one.host_id for one in seen.known if seen.now_ms - one.beat_at_ms > vanished_ms]
            forget_vanished(host.client, vanished, now_ms=seen.now_ms)


def _known(client: redis.Redis) -> tuple[str, ...]:
    return found_queues(cast("set[bytes]", client.smembers(keys.QUEUES_KNOWN)))
