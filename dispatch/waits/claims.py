"""Superseding: of several jobs that wait for one target, one goes on (Q 9.6)."""

from __future__ import annotations

from collections.abc import Callable

from dispatch.waits import timing
from dispatch.waits.holds import Holds
from dispatch.waits.visit import Objection, Visit, sleep
from pidispatch_site import log
from runs.outcome import Reason, Refusal


class Claims:
    """Claims targets. `is_live` tells whether a job may still be picked up; None: it cannot be told."""

    def __init__(self, holds: Holds, is_live: Callable[[str], bool | None]) -> None:
        self._holds = holds
        self._is_live = is_live

    def satisfied(self, visit: Visit) -> Refusal | None:
        """Refuse a job whose target another one has waited for to the end."""
        job = visit.job
        by = self._holds.satisfied_by(job.identity) if job.identity else None
        if by is None or by == job.job_id:
            return None
        return Refusal(Reason.WAIT_SUPERSEDED, said={"satisfiedBy": by})

    def claim(self, visit: Visit, now_ms: int, until_ms: int) -> Objection | None:
        """Claim the job's target until then; None if it may wait for it.

        While another job holds the target, only what is known of that job decides, and nothing else does.
        """
        job_id, identity = visit.job.job_id, visit.job.identity
        if identity is None:
            return None
        holder = self._holds.claim(job_id, identity, now_ms=now_ms, until_ms=until_ms)
        if holder == job_id:
            return None
        is_live = self._is_live(holder)
        if is_live:
            return Refusal(Reason.WAIT_SUPERSEDED, said={"heldBy": holder})
        if is_live is False:
            gone = holder
            holder = self._holds.claim(job_id, identity, now_ms=now_ms, until_ms=until_ms, displacing=gone)
            if holder == job_id:
                log.event("wait_lease_taken_over", jobId=job_id, **{"from": gone})
                return None
        delay_ms = timing.UNVERIFIED_MS
        log.event("wait_supersede_unverified", jobId=job_id, heldBy=holder, delayMs=delay_ms)
        return sleep(now_ms, delay_ms)
