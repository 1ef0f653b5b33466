"""The reservation of one attempt, made right before its container; `refunds` pays it back."""

from __future__ import annotations

from dataclasses import dataclass

from redis.exceptions import ResponseError

from dispatch.instants import epoch_ms, instant_of
from dispatch.money.ledger import Blocked, Granted, NotHeld, ReserveRequest, ScopeCaps, Stale, valkey_now
from dispatch.money.windows import tokens_are_spent
from dispatch.queue import keys
from dispatch.queue.delays import between
from dispatch.worker.context import Context
from dispatch.worker.patience import patiently


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
    return patiently(host, lambda: between(host.delays, "reserve", lambda: host.ledger.reserve(request)))


def _scope_caps(context: Context) -> ScopeCaps | None:
    limit, scope_hash = context.limit, context.scope_hash
    if limit is None or scope_hash is None:
        return None
    return ScopeCaps(scope_hash=scope_hash, caps=limit.caps)
