"""The money of one attempt: reserved right before its container, paid back by contracts 4 only."""

from __future__ import annotations

from dispatch.money.ledger import Blocked, Granted, ReserveRequest, valkey_now
from dispatch.queue.popper import Claimed
from dispatch.worker.context import Context
from dispatch.worker.host import Host
from dispatch.worker.patience import patiently


def reserve(context: Context) -> Granted | Blocked:
    """Take one start in every window, or learn which forbids it; waits for a Valkey that is away."""
    host, claimed = context.host, context.claimed
    # Read anew: gates may have taken minutes, and midnight chooses the counters.
    now_ms = patiently(host, lambda: valkey_now(host.client))
    request = ReserveRequest(
        job_id=claimed.job_id,
        attempt=claimed.attempt,
        token=claimed.token,
        first_queued_ms=claimed.first_queued_ms,
        now_ms=now_ms,
        caps=host.caps,
    )
    host.delays("before reserve")
    answer = patiently(host, lambda: host.ledger.reserve(request))
    host.delays("after reserve")
    return answer


def refund(host: Host, claimed: Claimed) -> None:
    """Pay the attempt back, unless another pop of the job holds the grant by now."""
    host.delays("before refund")
    patiently(host, lambda: host.ledger.refund(claimed.job_id, claimed.attempt, token=claimed.token))
    host.delays("after refund")
