"""The fleet's scope slot as a rung: of a repository as many jobs on all hosts as its limit says (Q 3.1, 7.5).

A folder is no matter of the fleet: the same path on two hosts is two folders.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from dispatch.leases import order
from dispatch.operator_files.scoped_limits import ceiling
from dispatch.queue.patient import GaveUpError
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Held, Pass, Taking
from dispatch.worker.context import Context
from dispatch.worker.patience import patiently
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS

# A container that its limit has ended may need so long until everything of it is settled (Q 7.5).
_BEYOND_THE_LIMIT = timedelta(minutes=5)


def _take(context: Context) -> Pass | Held | Defer:
    host, claimed = context.host, context.claimed
    limit = _limit(context)
    if host.leases is None or context.scope_hash is None or limit is None:
        return Pass()
    lasting = timedelta(seconds=host.timings.job_limit) + _BEYOND_THE_LIMIT
    context.lease = host.leases.take(
        order.scope(context.scope_hash),
        job_id=claimed.job_id,
        token=claimed.token,
        slots=limit,
        ttl_ms=lasting // timedelta(milliseconds=1),
    )
    return _denied(context) if context.lease is None else Held(lambda: _free(context))


def keep(context: Context) -> Pass | Defer:
    """Make sure of the attempt's lease, if it has one, for a container's whole time; waits for Valkey."""
    host, lease = context.host, context.lease
    if host.leases is None or lease is None:
        return Pass()
    leases = host.leases
    kept = patiently(host, lambda: leases.keep(lease))
    if kept is None:
        return _denied(context)
    context.lease = kept
    return Pass()


def wake_if_free(context: Context) -> None:
    """Wake the next in line if a slot of the attempt's scope has become free; else its re-check wakes it."""
    leases, scope_hash, limit = context.host.leases, context.scope_hash, _limit(context)
    if leases is None or scope_hash is None or limit is None:
        return
    with suppress(*VALKEY_FAULTS):
        if leases.has_room(order.scope(scope_hash), limit):
            _wake_next(context)


def _limit(context: Context) -> int | None:
    """Tell how many may run in the fleet; None where that is not limited, or no matter of the fleet."""
    is_forge = context.job.kind.is_forge
    return ceiling(context.limit, is_forge=is_forge) if is_forge else None


def _denied(context: Context) -> Defer:
    return Defer(
        until=context.as_of_now() + timedelta(seconds=context.host.timings.scope_recheck),
        reason=WaitReason.SCOPE_BUSY_FLEET,
        scope_hash=context.scope_hash,
        said={"where": "fleet"},
    )


def _free(context: Context) -> None:
    """Give the lease back, however long Valkey takes to answer: unheard, it would keep the fleet out."""
    host, leases, lease = context.host, context.host.leases, context.lease
    if leases is None or lease is None:
        raise RuntimeError("a lease is given back by who has taken it")
    try:
        patiently(host, lambda: leases.give_back(lease))
    except GaveUpError:
        log.event("fleet_lease_left", jobId=lease.job_id, reason="shutdown")
        return
    with suppress(*VALKEY_FAULTS):
        _wake_next(context)


def _wake_next(context: Context) -> None:
    host = context.host
    if host.waiters.wake_oldest(host.queues, WaitReason.SCOPE_BUSY_FLEET, context.scope_hash):
        host.job_woken()


FLEET_SCOPE: Taking[Context] = Taking(name="fleet scope", take=_take)
