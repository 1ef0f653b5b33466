"""Asking the profiles of a waiting job: in a slot, in order, within the bounds of its waiting (Q 9.4, 9.5).

A decision that cannot be read as "go" keeps the job waiting: behind it a container is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from dispatch.instants import epoch_ms
from dispatch.waits import timing
from dispatch.waits.check import CheckResult, Verdict, is_usable_argument
from dispatch.waits.claims import Claims
from dispatch.waits.cleared import Cleared
from dispatch.waits.holds import Hold, Holds
from dispatch.waits.slots import CheckSlots
from dispatch.waits.timing import Bound
from dispatch.waits.visit import Objection, Visit, WaitBounds, sleep
from pidispatch_site import log
from runs.outcome import Reason, Refusal

# Longer than the 5 s of a busy folder, so that the two can be told apart by when they wake.
_SHORTEST_DELAY_MS = 6_000
_WHERE_TO_LOOK = "PI_WAIT_CHECK_SLOTS, PI_CONCURRENCY"
_WHERE_IN_THE_FLEET = "PI_WAIT_CHECK_SLOTS"


class Check(Protocol):
    """How a profile is asked: `check.run_check`."""

    def __call__(
        self,
        executable: Path,
        argument: str,
        *,
        environment: Mapping[str, str],
        timeout_ms: int,
        stop: Callable[[], bool],
    ) -> CheckResult:
        """Run the check and tell what it means."""


class Polling:
    """Asks profiles for one worker; safe for threads. `profiles` are the declared ones."""

    def __init__(
        self,
        *,
        holds: Holds,
        claims: Claims,
        slots: CheckSlots,
        profiles: Mapping[str, Path],
        bounds: WaitBounds,
        environment: Mapping[str, str],
        random: Callable[[], float],
        check: Check,
    ) -> None:
        self._holds = holds
        self._claims = claims
        self._slots = slots
        self._profiles = profiles
        self._bounds = bounds
        self._environment = environment
        self._random = random
        self._check = check
        self._cleared = Cleared(bounds.interval_ms)

    def objection(self, visit: Visit) -> Objection | None:
        """Ask them if a slot is free; None when all say "go". The slot is free again afterwards.

        A job for which they have said so within one interval is not asked about again: a busy folder brings
        it here every few seconds.
        """
        if self._cleared.has(visit.job.job_id, now_ms=visit.now_ms()):
            return None
        hold = self._holds.read(visit.job.job_id)
        if not self._slots.try_take():
            return self._denied(visit, hold)
        try:
            # The fleet's slot inside the host's: taken after it and given back before it.
            with self._slots.in_fleet(visit) as is_free:
                if is_free:
                    return self._with_slot(visit, hold)
        finally:
            self._slots.give_back()
        return self._denied(visit, hold, where="fleet")

    def _with_slot(self, visit: Visit, hold: Hold) -> Objection | None:
        now_ms = visit.now_ms()
        distance_ms = timing.backoff(self._bounds.interval_ms, _held_ms(visit, hold, now_ms) or 0)
        objection = self._claims.claim(visit, now_ms, now_ms + distance_ms)
        if objection is not None:
            return objection
        if hold.throttles:
            self._holds.forget_denials(visit.job.job_id)
        return self._ask_all(visit, hold)

    def _ask_all(self, visit: Visit, hold: Hold) -> Objection | None:
        job, profiles = visit.job, visit.conditions.profiles
        if not is_usable_argument(job.label):
            log.event("wait_check_target_unusable", jobId=job.job_id, profile=profiles[0])
            return Refusal(Reason.WAIT_UNREADABLE, said={"profile": profiles[0]})
        for profile in profiles:
            verdict = self._ask(visit, profile)
            if verdict is not Verdict.GO:
                return self._not_go(visit, hold, profile, verdict)
        self._holds.count_check(job.job_id, token=job.token, fault=False)
        self._cleared.add(job.job_id, now_ms=visit.now_ms())
        return None

    def _ask(self, visit: Visit, profile: str) -> Verdict:
        result = self._check(
            self._profiles[profile],
            visit.job.label,
            environment=self._environment,
            timeout_ms=self._bounds.check_timeout_ms,
            stop=visit.stop,
        )
        log.event(
            "wait_check",
            jobId=visit.job.job_id,
            profile=profile,
            code=result.code,
            detail=result.detail,
            stdoutBytes=result.stdout_bytes,
            stderrBytes=result.stderr_bytes,
        )
        return result.verdict

    def _not_go(self, visit: Visit, hold: Hold, profile: str, verdict: Verdict) -> Objection:
        match verdict:
            case Verdict.MISSING:
                return Refusal(Reason.WAIT_PROFILE_UNKNOWN, said={"profile": profile})
            case Verdict.REFUSE:
                held_ms = _held_ms(visit, hold, visit.now_ms())
                return Refusal(Reason.WAIT_REFUSED, said={"profile": profile, "heldForMs": held_ms})
            case Verdict.ABORTED:
                log.event("wait_check_aborted", jobId=visit.job.job_id, profile=profile)
                return sleep(visit.now_ms(), timing.AFTER_ABORT_MS)
            case Verdict.HOLD:
                return self._not_yet(visit, profile, fault=False)
            case Verdict.FAULT:
                return self._not_yet(visit, profile, fault=True)
            case _:
                log.event("wait_check_unintelligible", jobId=visit.job.job_id, profile=profile)
                return self._not_yet(visit, profile, fault=True)

    def _not_yet(self, visit: Visit, profile: str, *, fault: bool) -> Objection:
        """Count the check and hold the job, unless this was the last check or the last hour that it had."""
        bounds, job = self._bounds, visit.job
        hold = self._holds.count_check(job.job_id, token=job.token, fault=fault)
        now_ms = visit.now_ms()
        held_ms = _held_ms(visit, hold, now_ms)
        bound = timing.bound_after_check(
            faults=hold.faults,
            checks=hold.checks,
            held_ms=held_ms,
            max_faults=bounds.max_faults,
            max_checks=bounds.max_checks,
            max_ms=bounds.max_ms,
        )
        if bound is Bound.MAX_FAULTS:
            return Refusal(Reason.WAIT_UNANSWERABLE, said={"profile": profile, "faults": hold.faults})
        if bound is not None:
            return _expired(bound, hold, held_ms, profile=profile)
        delay_ms = timing.hold_delay(bounds.interval_ms, held_ms or 0, bounds.max_ms, self._random())
        delay_ms = max(delay_ms, _SHORTEST_DELAY_MS)
        self._holds.record(visit.waiter, now_ms=now_ms, until_ms=now_ms + delay_ms)
        return sleep(now_ms, delay_ms, profile=profile, fault=fault, heldForMs=held_ms or 0, delayMs=delay_ms)

    def _denied(self, visit: Visit, hold: Hold, *, where: str | None = None) -> Objection:
        """Hold a job for whose check there is no slot; one that starves is said aloud, and expires."""
        bounds, job, now_ms = self._bounds, visit.job, visit.now_ms()
        held_ms = _held_ms(visit, hold, now_ms)
        delay_ms = timing.throttle_delay(bounds.interval_ms, held_ms or 0, self._random())
        hold = self._holds.count_denial(
            visit.waiter, token=job.token, now_ms=now_ms, until_ms=now_ms + delay_ms
        )
        slots = bounds.slots if where else self._slots.limit
        if hold.throttles == timing.DENIALS_TO_SAY:
            log.event(
                "wait_capacity_exceeded",
                jobId=job.job_id,
                denials=hold.throttles,
                slots=slots,
                hint=_WHERE_IN_THE_FLEET if where else _WHERE_TO_LOOK,
                where=where,
            )
        bound = timing.bound_when_throttled(held_ms=held_ms, max_ms=bounds.max_ms)
        if bound is not None:
            return _expired(bound, hold, held_ms)
        log.event("wait_check_throttled", jobId=job.job_id, delayMs=delay_ms, slots=slots, where=where)
        return sleep(now_ms, delay_ms)


def _held_ms(visit: Visit, hold: Hold, now_ms: int) -> int | None:
    """Tell how long its profiles have kept it: the sleep until its own instant is not their doing."""
    held_ms, after = hold.held_ms(now_ms), visit.conditions.after
    if held_ms is None or after is None:
        return held_ms
    return min(held_ms, max(0, now_ms - epoch_ms(after)))


def _expired(bound: Bound, hold: Hold, held_ms: int | None, *, profile: str | None = None) -> Refusal:
    said = {"reason": bound.value, "checks": hold.checks, "profile": profile, "heldForMs": held_ms}
    return Refusal(Reason.WAIT_EXPIRED, said=said)
