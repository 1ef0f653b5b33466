"""The money of one attempt: reserved right before its container, paid back by contracts 4 only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from redis.exceptions import RedisError, ResponseError

from dispatch.instants import epoch_ms, instant_of
from dispatch.money.ledger import (
    Blocked,
    Granted,
    NotHeld,
    ReserveRequest,
    ScopeCaps,
    Stale,
    valkey_now,
)
from dispatch.money.windows import tokens_are_spent
from dispatch.queue import keys
from dispatch.queue.popper import Claimed
from dispatch.worker.context import Context
from dispatch.worker.host import Host
from dispatch.worker.patience import patiently
from pidispatch_site import log

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensSpent:
    """Nothing was taken: the tokens recorded today have reached their cap."""

    spent: int
    cap: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Nothing was taken: the server refuses the question (a counter is no number), so nobody may start."""


def reserve(
    context: Context, *, within_ms: int
) -> Granted | Blocked | NotHeld | Stale | TokensSpent | Unreadable:
    """Take one start in every window, or learn what forbids it; waits for a Valkey that is away.

    Asked in this order: tokens of the day, the scope's windows, the fleet's. NotHeld: meanwhile somebody else
    decided about the job. Stale: the attempt's `now` is further off than `within_ms`, or of another day.
    """
    try:
        return _tokens_spent(context) or _reserve(context, within_ms)
    except ResponseError:
        return Unreadable()


def _tokens_spent(context: Context) -> TokensSpent | None:
    host, cap = context.host, context.spending.token_cap
    if cap is None:
        return None
    # As of now, not of the claim: gates have taken a while, and midnight chooses the counter.
    spent = patiently(host, lambda: host.tokens.spent(instant_of(valkey_now(host.client))))
    return TokensSpent(spent=spent, cap=cap) if tokens_are_spent(spent, cap=cap) else None


def _reserve(context: Context, within_ms: int) -> Granted | Blocked | NotHeld | Stale:
    host, claimed = context.host, context.claimed
    request = ReserveRequest(
        job_id=claimed.job_id,
        attempt=claimed.attempt,
        token=claimed.token,
        first_queued_ms=claimed.first_queued_ms,
        now_ms=epoch_ms(context.now),
        caps=context.spending.caps,
        hold_percent=context.spending.hold_percent,
        scope=_scope_caps(context),
        job_key=keys.job(claimed.raw_id),
        now_within_ms=within_ms,
    )
    return patiently(host, lambda: _pointed(host, "reserve", lambda: host.ledger.reserve(request)))


def _scope_caps(context: Context) -> ScopeCaps | None:
    limit, scope_hash = context.limit, context.scope_hash
    if limit is None or scope_hash is None:
        return None
    return ScopeCaps(scope_hash=scope_hash, caps=limit.caps)


def refund(host: Host, claimed: Claimed) -> None:
    """Pay the attempt back, unless another pop of the job has the grant by now; who is parked looks again."""
    ledger = host.ledger

    def step() -> bool:
        return ledger.refund(claimed.job_id, claimed.attempt, token=claimed.token)

    if patiently(host, lambda: _pointed(host, "refund", step)):
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


def _pointed(host: Host, name: str, step: Callable[[], Answer]) -> Answer:
    host.delays(f"before {name}")
    answer = step()
    host.delays(f"after {name}")
    return answer
