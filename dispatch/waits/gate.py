"""The gate of jobs that wait: whether one may go on, sleeps longer, or never will (Q 9.2).

Questions are asked in the order of Q 9.2, so that what is free comes before what starts a process. Nothing is
held when an answer is given; what a job has waited so far stands in Valkey (`holds`), and a restart of the
worker changes none of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from dispatch.instants import epoch_ms
from dispatch.leases.leases import Leases
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Pass
from dispatch.waits import timing
from dispatch.waits.check import run_check
from dispatch.waits.claims import Claims
from dispatch.waits.conditions import read
from dispatch.waits.holds import Holds
from dispatch.waits.polling import Check, Polling
from dispatch.waits.slots import CheckSlots, check_limit, fleet_slot
from dispatch.waits.visit import Objection, Visit, WaitBounds, WaitingJob
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS
from runs.outcome import Reason, Refusal
from runs.shape import iso

__all__ = ["WaitBounds", "WaitGate", "WaitingJob"]


@dataclass(slots=True, kw_only=True, eq=False)
class WaitGate:
    """Judges the waiting jobs of one worker; safe for threads. `slots` are its check slots.

    `profiles` are the declared checks, `environment` what they get, `concurrency` the live number of jobs of
    this host. `is_live` tells whether a job may still be picked up; None: it cannot be told. `random` answers
    a number from 0 up to, not including, 1. `leases` limit the checks of a whole fleet; None: there is none.
    """

    holds: Holds
    profiles: Mapping[str, Path]
    bounds: WaitBounds
    environment: Mapping[str, str] = field(repr=False)
    concurrency: Callable[[], int]
    is_live: Callable[[str], bool | None]
    random: Callable[[], float]
    check: Check = run_check
    leases: Leases | None = None
    slots: CheckSlots = field(init=False)
    _claims: Claims = field(init=False)
    _polling: Polling = field(init=False)

    def __post_init__(self) -> None:
        self.slots = CheckSlots(
            lambda: check_limit(self.bounds.slots, self.concurrency()),
            in_fleet=partial(fleet_slot, self.leases, self.bounds),
        )
        self._claims = Claims(self.holds, self.is_live)
        self._polling = Polling(
            holds=self.holds,
            claims=self._claims,
            slots=self.slots,
            profiles=self.profiles,
            bounds=self.bounds,
            environment=self.environment,
            random=self.random,
            check=self.check,
        )

    def judge(self, job: WaitingJob, *, now: datetime, stop: Callable[[], bool]) -> Pass | Defer | Refusal:
        """Decide on a job in hand; `now` is Valkey's time of its pick-up, or a later reading.

        Runs its checks, so it may take as long as their time limits together; `stop` ends them early. Raises
        redis-py's errors, holding nothing: the same pop may ask again, and is counted once. After an outage
        that lasted, ask with a new `now`.
        """
        conditions = read(job.conditions)
        if conditions is None:
            return Pass()
        began, began_ms = time.monotonic(), epoch_ms(now)
        visit = Visit(
            job=job,
            conditions=conditions,
            now=now,
            now_ms=lambda: began_ms + int((time.monotonic() - began) * 1000),
            stop=stop,
        )
        answer = self._objection(visit)
        if answer is None:
            return self._clear(visit)
        if isinstance(answer, Refusal):
            self.let_go(job)
        return answer

    def _objection(self, visit: Visit) -> Objection | None:
        return (
            self._claims.satisfied(visit)
            or self._unreadable(visit)
            or self._too_early(visit)
            or (self._polling.objection(visit) if visit.conditions.profiles else None)
        )

    def _unreadable(self, visit: Visit) -> Refusal | None:
        conditions = visit.conditions
        if conditions.unreadable:
            return Refusal(Reason.WAIT_UNREADABLE, said={"conditions": conditions.unreadable})
        unknown = [name for name in conditions.profiles if name not in self.profiles]
        return Refusal(Reason.WAIT_PROFILE_UNKNOWN, said={"profile": unknown[0]}) if unknown else None

    def _too_early(self, visit: Visit) -> Objection | None:
        after = visit.conditions.after
        if after is None:
            return None
        delay_ms = epoch_ms(after) - epoch_ms(visit.now)
        if delay_ms > self.bounds.after_max_ms:
            return Refusal(Reason.WAIT_AFTER_BEYOND_MAX, said={"delayMs": delay_ms})
        if delay_ms <= timing.NEAR_ENOUGH_MS:
            return None
        now_ms, until_ms = visit.now_ms(), epoch_ms(after)
        objection = self._claims.claim(visit, now_ms, until_ms)
        if objection is not None:
            return objection
        self.holds.record(visit.waiter, now_ms=now_ms, until_ms=until_ms)
        said = {"until": iso(after), "label": visit.conditions.label}
        return Defer(until=after, reason=WaitReason.WAIT, said=said)

    def _clear(self, visit: Visit) -> Pass:
        job = visit.job
        since_ms = self.holds.clear(job.job_id, job.identity)
        if since_ms is not None:
            held_ms = max(0, visit.now_ms() - since_ms)
            log.event("wait_cleared", jobId=job.job_id, label=visit.conditions.label, heldForMs=held_ms)
        return Pass()

    def let_go(self, job: WaitingJob) -> None:
        """Release what a job leaves behind that is refused, or has ended otherwise.

        A refusal stands even if Valkey does not answer: decided anew, without what had been counted, it
        could turn into another whole wait. What stays behind expires, and the next job of the target takes
        the claim over.
        """
        try:
            self.holds.release(job.job_id, job.identity)
        except VALKEY_FAULTS as fault:
            log.event("wait_release_failed", jobId=job.job_id, error=type(fault).__name__)
