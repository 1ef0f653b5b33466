"""How an attempt leaves our hand: each way is one transition, repeated until Valkey answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dispatch.instants import instant_or_none
from dispatch.jobs import JobData, encode
from dispatch.queue.popper import Claimed
from dispatch.queue.transitions import Step
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer
from dispatch.waits.target import waiting_job
from dispatch.worker.context import began_on
from dispatch.worker.host import Host
from dispatch.worker.patience import patiently
from dispatch.worker.refunds import refund_left
from pidispatch_site import log
from runs.outcome import Outcome, Reason, Refusal, Verdict
from runs.record import Record
from runs.recording import NOTHING_RAN, JobFacts, Ran, Timing, attempt_entry, ended, facts_of, refused
from runs.workspace.local import Prepared

#: The names of Q 14 where they do not follow from the reason.
_REFUSAL_EVENTS: Mapping[Reason, str] = {
    Reason.JOB_IMAGE_MISSING: "refused_image_missing",
    Reason.JOB_IMAGE_FORGE_UNSUPPORTED: "refused_image_forge_unsupported",
    Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED: "refused_image_replicas_unsupported",
    Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED: "refused_image_commands_unsupported",
    Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED: "refused_image_any_uid_unsupported",
    Reason.WAIT_SUPERSEDED: "wait_superseded",
    Reason.WAIT_EXPIRED: "wait_expired",
    Reason.WAIT_PROFILE_UNKNOWN: "wait_profile_unknown",
    Reason.WAIT_AFTER_BEYOND_MAX: "wait_after_beyond_max",
    Reason.WAIT_REFUSED: "wait_refused",
    Reason.WAIT_UNANSWERABLE: "wait_unanswerable",
    Reason.DAILY_TOKEN_CAP: "over_token_budget",
    Reason.SCOPE_CAP: "over_scope_budget",
    Reason.OVER_BUDGET: "over_budget",
    Reason.SOFT_HOLD: "soft_hold",
}

#: As for refusals: where a scope is busy is said beside.
_DEFERRAL_EVENTS: Mapping[str, str] = {WaitReason.SCOPE_BUSY_FLEET: "scope_busy_deferred"}

_MOST_DOUBLINGS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the record may say of the job beyond its data: filled as far as the attempt came."""

    started_at: datetime
    provider: str | None = None
    model: str | None = None
    scope_hash: str | None = None
    prepared: Prepared | None = None


class Settlement:
    """The ways out for one claimed job. A lost transition is no error: it is logged, nothing else is done."""

    def __init__(self, host: Host, claimed: Claimed) -> None:
        self._host = host
        self._claimed = claimed

    def lost(self, name: str) -> None:
        """Say that somebody else decided about the job meanwhile."""
        log.event("transition_lost", jobId=self._claimed.job_id, transition=name)

    def give_back(self, why: str) -> None:
        """Put it back to the front of its queue: a pause, a drain, no slot, a shutdown."""
        if self._take("give back", lambda: self._host.transitions.give_back(self._claimed)):
            log.event("job_given_back", jobId=self._claimed.job_id, reason=why)

    def put_off(self, defer: Defer) -> bool:
        """Let it sleep; whether it does."""
        claimed = self._claimed
        refund_left(self._host, claimed)
        until_ms = round(defer.until.timestamp() * 1000)
        done = self._take(
            "put off",
            lambda: self._host.transitions.put_off(
                claimed,
                until_ms=until_ms,
                reason=defer.reason,
                scope_hash=defer.scope_hash,
                cause=defer.cause,
            ),
        )
        if done and not defer.is_told:
            self._log_deferral(defer, delay_ms=until_ms - claimed.now_ms)
        if not done and defer.reason == WaitReason.WAIT:
            # Cancelled while it was asked: what the gate has just noted would be shown for a day.
            self._let_go()
        return done

    def _log_deferral(self, defer: Defer, *, delay_ms: int) -> None:
        claimed, said = self._claimed, dict(defer.said)
        if defer.reason != WaitReason.WAIT:
            # A job that waits for the same thing again is no news.
            if claimed.reason == defer.reason:
                return
            said = {"kind": self._kind(), "delayMs": delay_ms, **said}
        name = _DEFERRAL_EVENTS.get(defer.reason, f"{defer.reason.replace('-', '_')}_deferred")
        log.event(name, jobId=claimed.job_id, **said)

    def refuse(self, refusal: Refusal, known: Known) -> None:
        """End it by policy: nothing ran and nothing was paid."""
        reason = refusal.reason
        refund_left(self._host, self._claimed)
        line = refused(
            self._facts(known), self._timing(known), reason, earlier=self._claimed.attempt_log
        ).to_bytes()
        transitions = self._host.transitions
        if self._take("refuse", lambda: transitions.refuse(self._claimed, reason=reason.value, record=line)):
            name = _REFUSAL_EVENTS.get(reason, f"refused_{reason.value.replace('-', '_')}")
            log.event(name, jobId=self._claimed.job_id, **_said_of(refusal))
            self._ended(Verdict(outcome=Outcome.POLICY, reason=reason))

    def fail_or_repeat(
        self,
        verdict: Verdict,
        known: Known,
        *,
        reserved: bool,
        ran: Ran = NOTHING_RAN,
        gone: str | None = None,
    ) -> None:
        """Settle an attempt that was judged: tried again while attempts remain and the verdict allows it.

        `gone` is its container's name once the engine has said that nothing of it is left.
        """
        claimed, host = self._claimed, self._host
        if not reserved:
            refund_left(host, claimed)
        repeats = verdict.retry and claimed.attempt + 1 < claimed.attempts
        record = ended(
            self._facts(known),
            self._timing(known),
            verdict,
            final=not repeats,
            budget_reserved=reserved,
            ran=ran,
            earlier=claimed.attempt_log,
        )
        if self._take("again" if repeats else "end", self._leaving(repeats, verdict, record, known, gone)):
            if repeats:
                host.record_pushed()
                self._log_failure(verdict)
            else:
                self._ended(verdict)

    def _leaving(
        self,
        repeats: bool,  # noqa: FBT001
        verdict: Verdict,
        record: Record,
        known: Known,
        gone: str | None,
    ) -> Callable[[], Step]:
        claimed, transitions, line = self._claimed, self._host.transitions, record.to_bytes()
        reason = verdict.reason.value if verdict.reason else None
        if not repeats:
            return lambda: transitions.end(
                claimed, outcome=verdict.outcome, reason=reason, record=line, gone=gone
            )
        # Bounded: the count of attempts is read off the queue, and nothing there is trusted.
        doublings = min(claimed.attempt, _MOST_DOUBLINGS)
        delay_ms = round(self._host.timings.backoff_base * 2**doublings * 1000)
        entry = attempt_entry(record) | began_on(known.prepared)
        return lambda: transitions.again(claimed, delay_ms=delay_ms, record=line, log_entry=entry, gone=gone)

    def _take(self, name: str, step: Callable[[], Step]) -> bool:
        """Do a transition; whether it was ours to do."""
        answer = patiently(self._host, step)
        if answer is Step.DONE:
            return True
        self.lost(name)
        return False

    def _ended(self, verdict: Verdict) -> None:
        self._host.record_pushed()
        self._let_go()
        if verdict.outcome is Outcome.FAILED:
            self._log_failure(verdict)
            return
        log.event(
            "job_completed",
            jobId=self._claimed.job_id,
            outcome=verdict.outcome.value,
            reason=verdict.reason.value if verdict.reason else None,
        )

    def _let_go(self) -> None:
        """Release what a waiting job leaves behind that ended elsewhere than at the wait gate."""
        job, claimed = self._claimed.job, self._claimed
        if isinstance(job, JobData) and job.wait_for:
            self._host.waits.let_go(waiting_job(claimed.job_id, claimed.token, job))

    def _log_failure(self, verdict: Verdict) -> None:
        log.event(
            "job_failed",
            jobId=self._claimed.job_id,
            attempt=self._claimed.attempt,
            reason=verdict.reason.value if verdict.reason else "infra",
        )

    def _facts(self, known: Known) -> JobFacts:
        job = self._claimed.job
        data = dict(encode(job)["data"]) if isinstance(job, JobData) else {}
        # What it asks for is not yet what it runs with: that is known from the settings rung on.
        data.pop("provider", None)
        data.pop("model", None)
        return facts_of(
            self._claimed.job_id,
            data,
            provider=known.provider,
            model=known.model,
            queued_at=instant_or_none(self._claimed.first_queued_ms),
            scope_hash=known.scope_hash,
        )

    def _timing(self, known: Known) -> Timing:
        return Timing(
            attempt=self._claimed.attempt,
            host=self._host.owner.host,
            started_at=known.started_at,
            ended_at=self._host.utc_now(),
        )

    def _kind(self) -> str | None:
        job = self._claimed.job
        if not isinstance(job, JobData):
            return None
        return "forge" if job.kind.is_forge else "local"


def _said_of(refusal: Refusal) -> dict[str, Any]:
    return {
        "detail": refusal.detail,
        "image": refusal.image,
        "kind": refusal.kind,
        "declared": refusal.declared,
        "provider": refusal.provider,
        **refusal.said,
    }
