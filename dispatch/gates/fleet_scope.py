"""The fleet's scope slot as a rung: of a repository as many jobs on all hosts as its limit says (Q 3.1, 7.5).

A folder is no matter of the fleet: the same path on two hosts is two folders.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import cast

from redis.exceptions import ResponseError

from dispatch.ids import natural_id, rq_id
from dispatch.leases import order
from dispatch.operator_files.scoped_limits import ceiling
from dispatch.queue import keys as queue_keys
from dispatch.queue.patient import GaveUpError
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Held, Pass, Taking
from dispatch.worker.context import Context
from dispatch.worker.patience import patiently
from hosts import keys
from hosts.names import found_queues, is_queue
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS

# A container that its limit has ended may need so long until everything of it is settled (Q 7.5).
_BEYOND_THE_LIMIT = timedelta(minutes=5)
# So long a slot is kept free for who waits for it: its host looks twice a second who is to be promoted.
_HEIR_MS = 3_000
# Where somebody has been due for so long, no host promotes.
_DUE_SECONDS = 2


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
    """Wake the next in line if a slot of the attempt's scope has become free; else its re-check wakes it.

    One that is kept for this very job was left to it while it was on its way to sleep.
    """
    host, claimed = context.host, context.claimed
    leases, scope_hash, limit = host.leases, context.scope_hash, _limit(context)
    if leases is None or scope_hash is None or limit is None:
        return
    with suppress(*VALKEY_FAULTS):
        if leases.is_kept_for(order.scope(scope_hash), limit, claimed.job_id):
            host.waiters.wake_these([(claimed.queue, claimed.raw_id)])
            host.job_woken()
        elif leases.has_room(order.scope(scope_hash), limit):
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
    heir = _wake_next(context)
    try:
        patiently(host, lambda: leases.give_back(lease, heir=heir, heir_ms=_HEIR_MS))
    except GaveUpError:
        log.event("fleet_lease_left", jobId=lease.job_id, reason="shutdown")
        return
    if heir is None:
        # Who has fallen asleep meanwhile.
        _wake_next(context)
    else:
        _wake_again(context, heir)


def _wake_next(context: Context) -> str | None:
    """Wake who waits longest for the scope, on whichever host, and tell its id; without Valkey nobody."""
    host, woken = context.host, list[str]()
    with suppress(*VALKEY_FAULTS):
        woken = host.waiters.wake_oldest(
            _all_queues(context), WaitReason.SCOPE_BUSY_FLEET, context.scope_hash, due_seconds=_DUE_SECONDS
        )
    if woken:
        host.job_woken()
    return natural_id(woken[0]) if woken else None


def _wake_again(context: Context, heir: str) -> None:
    """Wake whom the slot is kept for, if it came before it was free and sleeps again."""
    host, raw_id = context.host, rq_id(heir).encode()
    with suppress(*VALKEY_FAULTS):
        origin = cast("bytes | None", host.client.hget(queue_keys.job(raw_id), "origin"))
        queue = (origin or b"").decode("utf-8", "replace")
        if is_queue(queue) and host.waiters.wake_these([(queue, raw_id)]):
            host.job_woken()


def _all_queues(context: Context) -> tuple[str, ...]:
    """Name the queues of all hosts; this host's own alone where the set of them cannot be read."""
    host, found = context.host, set[bytes]()
    with suppress(ResponseError):
        found = cast("set[bytes]", host.client.smembers(keys.QUEUES_KNOWN))
    return tuple(sorted({*host.queues, *found_queues(found)}))


FLEET_SCOPE: Taking[Context] = Taking(name="fleet scope", take=_take)
