"""Leases of the fleet: a slot is a key that says who has it, and that expires (Q 7.5).

Leases fail open: when Valkey cannot tell, the host's own bounds still hold. What a lease says is compared and
changed in one script, by the token of the pop that took it, so that who comes late changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from redis.exceptions import RedisError

from dispatch.ids import rq_id
from dispatch.leases import order
from dispatch.queue import keys
from dispatch.queue.chunks import chunks
from dispatch.queue.owner import Owner
from dispatch.queue.scripts import shared
from dispatch.queue.transitions import Slot
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS

if TYPE_CHECKING:
    import redis

_LUA = Path(__file__).with_name("lua")
_SHARED = shared("slots") + "\n"
# Where a claim has its token: nobody has the slot yet.
_HEIR = "heir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One slot in the hand of one pop of a job. `slots` are the keys that may hold it, in the job's order.

    `beyond` are those of the next numbers: who has one of them has it by a higher limit, and counts.
    `is_degraded` when Valkey did not say whether it holds: it may, and nothing was found to be in its way.
    """

    slots: tuple[str, ...]
    beyond: tuple[str, ...] = ()
    job_id: str
    token: str
    ttl_ms: int
    is_degraded: bool = False


class Leases:
    """Takes leases for one worker; safe for threads. Times are milliseconds, counted by the server."""

    def __init__(self, client: redis.Redis, owner: Owner) -> None:
        self._client = client
        self._owner = owner
        self._take, self._give_back, self._sweep = (
            client.register_script(_SHARED + (_LUA / f"{name}.lua").read_text(encoding="ascii"))
            for name in ("take", "give_back", "sweep")
        )

    def take(self, prefix: str, *, job_id: str, token: str, slots: int | None, ttl_ms: int) -> Lease | None:
        """Take one of the slots of this prefix for the job that `token` has in hand; None: none is free.

        Without a limit (None, or below 1) it is granted without a key. Never raises: when Valkey does not
        answer it is granted degraded, to be asked for again by `keep`.
        """
        numbers = order.order(job_id, slots)
        lease = Lease(
            slots=order.keys(prefix, numbers),
            beyond=order.keys(prefix, order.beyond(slots)),
            job_id=job_id,
            token=token,
            ttl_ms=ttl_ms,
        )
        try:
            return self._taken(lease)
        except VALKEY_FAULTS as fault:
            return _degraded(lease, fault)

    def keep(self, lease: Lease) -> Lease | None:
        """Renew a lease for its whole time, or take it again if it was lost; None: no slot is free now.

        Raises VALKEY_FAULTS, and may be repeated.
        """
        return self._taken(lease)

    def _taken(self, lease: Lease) -> Lease | None:
        if not lease.slots:
            return lease
        job = keys.job(rq_id(lease.job_id).encode())
        named: list[str | bytes] = [job, *lease.slots, *lease.beyond]
        args: list[str | int] = [lease.token, lease.job_id, self._claim(lease), lease.ttl_ms]
        try:
            is_ours = self._take(keys=named, args=[*args, len(lease.slots)])
        except VALKEY_FAULTS:
            raise
        except RedisError as error:
            # A server that refuses the question refuses it every time.
            return _degraded(lease, error)
        return replace(lease, is_degraded=False) if is_ours else None

    def slot(self, lease: Lease) -> Slot | None:
        """Tell `begin` what to make sure of: nothing without a limit, or where a server refuses."""
        if not lease.slots or lease.is_degraded:
            return None
        return Slot(slots=lease.slots, beyond=lease.beyond, claim=self._claim(lease), ttl_ms=lease.ttl_ms)

    def give_back(self, lease: Lease, *, heir: str | None = None, heir_ms: int = 0) -> None:
        """Give its slot back, unless somebody else has it. Raises VALKEY_FAULTS; may be repeated.

        For `heir_ms` from then on it is kept free for the job `heir`, whichever host will have that.
        """
        if not lease.slots:
            return
        try:
            # Like a claim of an earlier pop of it, which this job alone may take over.
            next_claim = f"{self._owner.host}#{heir}#{_HEIR}" if heir else ""
            self._give_back(keys=lease.slots, args=[self._claim(lease), next_claim, heir_ms])
        except VALKEY_FAULTS:
            raise
        except RedisError as error:
            log.event("fleet_lease_left", jobId=lease.job_id, reason=type(error).__name__)

    def release(self, lease: Lease) -> None:
        """Give its slot back if Valkey answers; else it ends with its time. Never raises."""
        # Twice: it may be the connection alone that was lost, and the next one stands.
        for is_last in (False, True):
            try:
                self.give_back(lease)
            except VALKEY_FAULTS as fault:
                if is_last:
                    log.event("fleet_lease_left", jobId=lease.job_id, reason=type(fault).__name__)
            else:
                return

    def has_room(self, prefix: str, slots: int) -> bool:
        """Whether fewer than these slots of this prefix are taken now. Raises redis-py's errors."""
        within = order.order("", slots)
        return self._client.exists(*order.keys(prefix, (*within, *order.beyond(slots)))) < len(within)

    def is_kept_for(self, prefix: str, slots: int, job_id: str) -> bool:
        """Whether one of the slots of this prefix is kept free for the job. Raises redis-py's errors."""
        found = cast("list[bytes | None]", self._client.mget(order.keys(prefix, order.order(job_id, slots))))
        kept = f"#{job_id}#{_HEIR}".encode()
        return any(claim is not None and claim.endswith(kept) for claim in found)

    def sweep_own(self, scopes: Iterable[tuple[str, int]]) -> int:
        """Free what earlier boots of this worker have claimed of these scopes; say how many slots.

        Each is a scope's hash and its number of slots. Only when no container of those boots can be running.
        One script per some hundred slots; raises redis-py's errors, and may be repeated.
        """
        slots = [
            key
            for one, count in scopes
            for key in order.keys(order.scope(one), (*order.order("", count), *order.beyond(count)))
        ]
        owner = self._owner
        args = [owner.host_id, f"{owner.boot}/", f"{owner.host}#"]
        return sum(cast("int", self._sweep(keys=chunk, args=args)) for chunk in chunks(slots))

    def _claim(self, lease: Lease) -> str:
        return f"{self._owner.host}#{lease.job_id}#{lease.token}"


def _degraded(lease: Lease, error: Exception) -> Lease:
    log.event("fleet_lease_unavailable", jobId=lease.job_id, reason=type(error).__name__)
    return replace(lease, is_degraded=True)
