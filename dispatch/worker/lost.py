"""The record of a job whose worker vanished, made by the host whose sweep found it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from dispatch.instants import instant_or_none
from dispatch.jobs import JobData, encode
from dispatch.money.ledger import Ledger
from dispatch.queue.verdicts import Lost
from runs.recording import Timing, abandoned, facts_of


def record_of_lost(
    ledger: Ledger, lost: Lost, *, utc_now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> bytes:
    """Write its record, whatever stands in its hash; raises faults of Valkey only.

    A start that stands in the ledger stays spent: nobody knows what the worker came to.
    """
    facts = facts_of(
        lost.job_id,
        encode(lost.job)["data"] if isinstance(lost.job, JobData) else {},
        queued_at=instant_or_none(lost.first_queued_ms),
        scope_hash=lost.scope,
    )
    timing = Timing(
        attempt=lost.attempt, host=lost.host, started_at=instant_or_none(lost.started_ms), ended_at=utc_now()
    )
    reserved = ledger.is_reserved(lost.job_id, lost.attempt, first_queued_ms=lost.first_queued_ms)
    return abandoned(facts, timing, lost.cause, budget_reserved=reserved, earlier=lost.attempt_log).to_bytes()
