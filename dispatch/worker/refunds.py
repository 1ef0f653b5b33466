"""What follows a reservation: it is paid back by contracts 4 only, and a container's tokens are counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from redis.exceptions import RedisError

from dispatch.instants import instant_of
from dispatch.money.ledger import valkey_now
from dispatch.queue import keys
from dispatch.queue.delays import between
from dispatch.queue.popper import Claimed
from dispatch.worker.context import Context
from dispatch.worker.host import Host
from dispatch.worker.patience import patiently
from pidispatch_site import log


def refund(host: Host, claimed: Claimed) -> None:
    """Pay the attempt back, unless another pop of the job has the grant by now; who is parked looks again."""
    ledger = host.ledger

    def step() -> bool:
        return ledger.refund(claimed.job_id, claimed.attempt, token=claimed.token)

    if patiently(host, lambda: between(host.delays, "refund", step)):
        host.rules.freed()


def refund_left(host: Host, claimed: Claimed) -> None:
    """Pay back what a pop of the job left that was killed between its reservation and `begin`."""
    if not claimed.put_backs:
        return

    def step() -> bool:
        return host.ledger.refund_left(
            claimed.job_id,
            claimed.attempt,
            token=claimed.token,
            job_key=keys.job(claimed.raw_id),
            first_queued_ms=claimed.first_queued_ms,
        )

    if patiently(host, step):
        host.rules.freed()


def record_tokens(context: Context, reported: Mapping[str, Any] | None) -> None:
    """Count what a container says it spent, while there is a cap on it (Q 3.6, 8.4).

    Telemetry: what cannot be counted is logged, no more.
    """
    host, claimed = context.host, context.claimed
    tokens = math.ceil((reported or {}).get("total") or 0)
    if context.spending.token_cap is None or tokens <= 0:
        return
    try:
        patiently(
            host,
            lambda: host.tokens.record(
                claimed.job_id, claimed.attempt, tokens, now=instant_of(valkey_now(host.client))
            ),
        )
    except RedisError as error:
        log.event("token_spend_error", jobId=claimed.job_id, reason=type(error).__name__)
