"""What a worker does for the fleet besides its jobs: it shows itself, hears orders, looks after others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from dispatch.leases.boot_sweep import sweep_scopes
from dispatch.queue.apart import apart
from dispatch.queue.containers import forget_vanished
from dispatch.queue.suspects import Suspects, suspects
from dispatch.worker.host import Host
from dispatch.worker.orders import Orders
from hosts import keys, roster
from hosts.names import found_queues
from hosts.registry import Registry
from hosts.rows import Roster
from pidispatch_site import log
from runs.inheritance import take_over
from runs.reaper import Reaped

if TYPE_CHECKING:
    pass


@dataclass(slots=True, kw_only=True)
class Duties:
    """The fleet's part of one worker. `inherited` is rung when records of a vanished host came over."""

    host: Host
    registry: Registry
    orders: Orders
    inherited: Callable[[], object]
    _shown_jobs: int = 0
    _has_tried: bool = False
    _has_swept: bool = False
    _knows_queues: bool = True

    def enter(self) -> None:
        """Show ourselves; OperationalError when another machine bears our name. Raises VALKEY_FAULTS."""
        self.registry.register()

    def hear_orders(self) -> None:
        """Obey what is asked of this worker, and let the fleet see at once when it has more or fewer jobs.

        Who waits for a drained host to be idle must not be shown what was a beat ago. Raises VALKEY_FAULTS.
        """
        self.orders.look()
        jobs = len(self.host.live)
        if jobs != self._shown_jobs:
            self.registry.publish()
            self._shown_jobs = jobs

    def free_claims(self, reaped: Reaped) -> None:
        """Free what older boots of ours have leased, once the engine has said what still runs.

        That it has not is said at the first call alone.
        """
        leases = self.host.leases
        if leases is None or self._has_swept or (self._has_tried and not reaped.enumerated):
            return
        sweep_scopes(leases, reaped, self.host.rules.scoped_limits())
        self._has_tried, self._has_swept = True, reaped.enumerated

    def queues_of_others(self) -> Suspects:
        """Find the queues of others whose jobs nobody alive has. Raises VALKEY_FAULTS."""
        host = self.host
        others = [name for name in self._known() if name not in host.queues]
        return suspects(host.client, others, late=host.timings.queue.late)

    def _known(self) -> tuple[str, ...]:
        """Read the set of queues; one of another type names none, which is said once."""
        unreadable: dict[str, str] = {}
        names: tuple[str, ...] = ()
        with apart(keys.QUEUES_KNOWN, unreadable):
            names = found_queues(cast("set[bytes]", self.host.client.smembers(keys.QUEUES_KNOWN)))
        fault = unreadable.get(keys.QUEUES_KNOWN)
        if fault and self._knows_queues:
            log.event("known_queues_unreadable", reason=fault)
        elif not fault and not self._knows_queues:
            log.event("known_queues_readable")
        self._knows_queues = fault is None
        return names

    def look_after_others(self) -> None:
        """Forget containers that ended on vanished hosts, and take over the records that they left unwritten.

        Raises redis-py's errors.
        """
        host = self.host
        vanished_ms = round(host.timings.vanished * 1000)
        seen = roster.read(host.client)
        if isinstance(seen, Roster):
            vanished = [one.host_id for one in seen.known if seen.now_ms - one.beat_at_ms > vanished_ms]
            forget_vanished(host.client, vanished, now_ms=seen.now_ms)
        while take_over(host.client, host.owner.host_id, vanished_ms=vanished_ms):
            self.inherited()
