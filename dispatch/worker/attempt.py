"""One attempt of one claimed job, in a thread of its own: up the ladder, reserve, begin, run, settle.

The last steps before a container stand in this order: reserve, begin, create (contracts 4). Whatever happens,
what the attempt holds is released when it ends, after its last transition.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from dispatch.chaining import chain
from dispatch.gates.fleet_scope import wake_if_free
from dispatch.gates.scope import has_room, wake_next
from dispatch.ids import natural_id
from dispatch.jobs import Malformed
from dispatch.ladder import LADDER
from dispatch.money.ledger import Granted, NotHeld
from dispatch.queue.patient import GaveUpError
from dispatch.queue.popper import Claimed
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Pass, climb
from dispatch.worker.admission import admit
from dispatch.worker.context import Context, begin_context
from dispatch.worker.host import Host
from dispatch.worker.live import LiveAttempt
from dispatch.worker.refunds import record_tokens, refund
from dispatch.worker.run import Ended, NotBegun, Planned, carry_out, plan
from dispatch.worker.settle import Known, Settlement
from pidispatch_site import log
from pidispatch_site.errors import ConfigurationError
from runs.outcome import InfraFault, Outcome, Reason, Refusal, Verdict


@dataclass(slots=True)
class _Progress:
    """How far the attempt came, for the frame that settles what broke it."""

    started_at: datetime
    context: Context | None = None
    granted: Granted | None = None
    asked_for_container: bool = False

    @property
    def known(self) -> Known:
        """What the record may say by now: what a job runs with only once its settings were read."""
        if self.context is None:
            return Known(started_at=self.started_at)
        effective = self.context.settled[0] if self.context.settled else None
        return Known(
            started_at=self.started_at,
            provider=effective.provider if effective else None,
            model=effective.model if effective else None,
            scope_hash=self.context.scope_hash,
            prepared=self.context.prepared,
        )


def attempt(host: Host, claimed: Claimed) -> None:
    """Take the job as far as it comes. Never raises: what it cannot settle is left to the sweep."""
    live = LiveAttempt(claimed=claimed)
    held = ExitStack()
    with host.live.holding(live):
        try:
            _settle(host, claimed, live, held)
        except GaveUpError:
            log.event("job_left_behind", jobId=claimed.job_id)
        except Exception as error:  # noqa: BLE001 - nothing may end the thread with slot and folder held
            log.event("attempt_unsettled", jobId=claimed.job_id, error=type(error).__name__)
        finally:
            _release(held, claimed)


def _release(held: ExitStack, claimed: Claimed) -> None:
    """Give everything back; one that cannot be is our own bug, and changes nothing about the job any more."""
    try:
        held.close()
    except Exception as error:  # noqa: BLE001 - the others have been released all the same
        log.event("release_failed", jobId=claimed.job_id, error=type(error).__name__)


def _settle(host: Host, claimed: Claimed, live: LiveAttempt, held: ExitStack) -> None:
    """Bring the attempt to its one transition out of our hand, whatever breaks on the way."""
    settlement = Settlement(host, claimed)
    progress = _Progress(host.utc_now())
    try:
        _attempt(host, claimed, live, held, settlement, progress)
    except GaveUpError:
        raise
    except InfraFault as fault:
        log.event("attempt_fault", jobId=claimed.job_id, detail=fault.detail)
        if fault.reason is Reason.CONTAINER_NEVER_STARTED:
            host.engine_was_silent()
        reserved = _paid(host, claimed, progress)
        verdict = Verdict(outcome=Outcome.FAILED, reason=fault.reason, retry=True)
        settlement.fail_or_repeat(verdict, progress.known, reserved=reserved)
    except Exception as error:  # noqa: BLE001 - the frame of an attempt: our own bug must not be paid for twice
        log.event("attempt_error", jobId=claimed.job_id, error=type(error).__name__)
        reserved = _paid(host, claimed, progress)
        if isinstance(error, ConfigurationError) and not live.has_begun:
            settlement.refuse(Refusal(Reason.CONFIG_REFUSED, "container-settings"), progress.known)
        else:
            settlement.fail_or_repeat(Verdict(outcome=Outcome.FAILED), progress.known, reserved=reserved)


def _paid(host: Host, claimed: Claimed, progress: _Progress) -> bool:
    """Pay a reservation back if nobody asked for its container; whether one stays spent."""
    if progress.granted is not None and not progress.asked_for_container:
        _give_money_back(host, claimed, progress)
    return progress.granted is not None


def _attempt(
    host: Host,
    claimed: Claimed,
    live: LiveAttempt,
    held: ExitStack,
    settlement: Settlement,
    progress: _Progress,
) -> None:
    if isinstance(claimed.job, Malformed):
        detail = ":".join(filter(None, (claimed.job.detail.value, claimed.job.field)))
        settlement.refuse(Refusal(Reason.JOB_MALFORMED, detail), progress.known)
        return
    if natural_id(claimed.rq_id) is None:
        # No producer of ours writes it so: two such jobs could share a record, a grant and a container.
        settlement.refuse(Refusal(Reason.JOB_MALFORMED, "id"), progress.known)
        return
    context = progress.context = begin_context(host, claimed, claimed.job, live.abort)
    answer = climb(LADDER, context, held, now=context.now, stop_asked=context.abort.is_set)
    match answer:
        case None:
            settlement.give_back("shutdown")
        case Defer():
            _put_off(context, answer, held, settlement)
        case Refusal():
            settlement.refuse(answer, progress.known)
        case Pass():
            _pay_and_run(context, live, held, settlement, progress)


def _put_off(context: Context, defer: Defer, held: ExitStack, settlement: Settlement) -> None:
    """Let the job sleep; what came about between our look and its falling asleep wakes it again."""
    host, rules = context.host, context.host.rules
    if not settlement.put_off(defer):
        return
    if defer.reason == WaitReason.SCOPE_BUSY and context.scope_hash and has_room(context):
        held.callback(wake_next, host, context.scope_hash)
    if defer.reason == WaitReason.SCOPE_BUSY_FLEET:
        held.callback(wake_if_free, context)
    if defer.reason in (WaitReason.PAUSE_WINDOW, WaitReason.CAP) and rules.version != context.rules:
        rules.wake({WaitReason(defer.reason)})


def _pay_and_run(
    context: Context, live: LiveAttempt, held: ExitStack, settlement: Settlement, progress: _Progress
) -> None:
    # Before the money: what no container may be is refused for free.
    settled, planned = context.settled, plan(context)
    match admit(context):
        case None:
            settlement.give_back("shutdown")
        case NotHeld():
            settlement.lost("reserve")
        case Defer() as defer:
            _put_off(context, defer, held, settlement)
        case Refusal() as refusal:
            settlement.refuse(refusal, progress.known)
        case Granted() as granted:
            progress.granted = granted
            if context.settled is not settled:
                planned = plan(context)
            _run_paid(context, live, planned, settlement, progress)


def _run_paid(
    context: Context, live: LiveAttempt, planned: Planned, settlement: Settlement, progress: _Progress
) -> None:
    result = carry_out(
        context, live, planned, on_asking=lambda: setattr(progress, "asked_for_container", True)
    )
    match result:
        case NotBegun():
            # Refund first, then the transition: a crash in between must not leave a free start behind.
            _give_money_back(context.host, context.claimed, progress)
            if not result.lost:
                settlement.give_back(result.why)
        case Ended(verdict=verdict, ran=ran, gone=gone):
            if verdict.refund:
                _give_money_back(context.host, context.claimed, progress)
            record_tokens(context, ran.tokens)
            chained = chain(context, verdict, ran)
            settlement.fail_or_repeat(
                verdict, progress.known, reserved=not verdict.refund, ran=chained, gone=gone
            )


def _give_money_back(host: Host, claimed: Claimed, progress: _Progress) -> None:
    refund(host, claimed)
    progress.granted = None
