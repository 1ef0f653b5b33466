"""The money of one attempt: reserved right before its container, paid back by contracts 4 only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dispatch.money.ledger import Blocked, Granted, NotHeld, ReserveRequest, Stale
from dispatch.queue import keys
from dispatch.queue.popper import Claimed
from dispatch.worker.context import Context
from dispatch.worker.host import Host
from dispatch.worker.patience import patiently

Answer = TypeVar("Answer")

# The reading of the claim is tried first: a job that came up the ladder at once needs no other.
_FIRST_WITHIN_MS = 1_000
_LATER_WITHIN_MS = 60_000


def reserve(context: Context) -> Granted | Blocked | NotHeld:
    """Take one start in every window, or learn which forbids it; waits for a Valkey that is away.

    NotHeld: meanwhile somebody else decided about the job.
    """
    host, claimed = context.host, context.claimed
    request = ReserveRequest(
        job_id=claimed.job_id,
        attempt=claimed.attempt,
        token=claimed.token,
        first_queued_ms=claimed.first_queued_ms,
        now_ms=claimed.now_ms,
        caps=host.caps,
        job_key=keys.job(claimed.raw_id),
        now_within_ms=_FIRST_WITHIN_MS,
    )
    while True:
        answer = _ask(host, request)
        if not isinstance(answer, Stale):
            return answer
        # Gates have taken a while, and midnight chooses the counters. A slow server's answer ages as well.
        request = replace(request, now_ms=answer.now_ms, now_within_ms=_LATER_WITHIN_MS)


def _ask(host: Host, request: ReserveRequest) -> Granted | Blocked | NotHeld | Stale:
    return patiently(host, lambda: _pointed(host, "reserve", lambda: host.ledger.reserve(request)))


def refund(host: Host, claimed: Claimed) -> None:
    """Pay the attempt back, unless another pop of the job holds the grant by now."""
    ledger = host.ledger

    def step() -> bool:
        return ledger.refund(claimed.job_id, claimed.attempt, token=claimed.token)

    patiently(host, lambda: _pointed(host, "refund", step))


def _pointed(host: Host, name: str, step: Callable[[], Answer]) -> Answer:
    host.delays(f"before {name}")
    answer = step()
    host.delays(f"after {name}")
    return answer
