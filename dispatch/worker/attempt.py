"""One attempt of one claimed job, in a thread of its own: up the ladder, reserve, begin, run, settle.

The last steps before a container stand in this order: reserve, begin, create (contracts 4). Whatever happens,
what the attempt holds is released when it ends, after its last transition.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from dispatch.gates.folder import wake_next
from dispatch.jobs import Malformed
from dispatch.ladder import LADDER
from dispatch.money.ledger import Blocked, Granted
from dispatch.queue.patient import GaveUpError
from dispatch.queue.popper import Claimed
from dispatch.rungs import Defer, Pass, climb
from dispatch.worker.context import Context, begin_context
from dispatch.worker.host import Host
from dispatch.worker.live import LiveAttempt
from dispatch.worker.payment import refund, reserve
from dispatch.worker.run import Ended, NotBegun, carry_out
from dispatch.worker.settle import Known, Settlement
from pidispatch_site import log
from pidispatch_site.errors import ConfigurationError
from runs.container import container_name
from runs.outcome import InfraFault, Outcome, Reason, Refusal, Verdict


@dataclass(slots=True)
class _Progress:
    """How far the attempt came, for the frame that settles what broke it."""

    known: Known
    granted: Granted | None = None
    asked_for_container: bool = False


def attempt(host: Host, claimed: Claimed) -> None:
    """Take the job as far as it comes. Never raises: what it cannot settle is left to the sweep."""
    live = LiveAttempt(claimed=claimed, container=container_name(claimed.job_id))
    settlement = Settlement(host, claimed)
    progress = _Progress(Known(started_at=host.utc_now()))
    with host.live.holding(live):
        try:
            _attempt(host, claimed, live, settlement, progress)
        except GaveUpError:
            log.event("job_left_behind", jobId=claimed.job_id)
        except Exception as error:  # noqa: BLE001 - the frame of an attempt: our own bug must not be paid for twice
            _broken(host, claimed, settlement, progress, error)


def _attempt(
    host: Host, claimed: Claimed, live: LiveAttempt, settlement: Settlement, progress: _Progress
) -> None:
    if isinstance(claimed.job, Malformed):
        detail = ":".join(filter(None, (claimed.job.detail.value, claimed.job.field)))
        settlement.refuse(Refusal(Reason.JOB_MALFORMED, detail), progress.known)
        return
    put_off: Defer | None = None
    with ExitStack() as held:
        context = begin_context(host, claimed, claimed.job, live.abort)
        progress.known = _known(progress.known, context)
        try:
            put_off = _admit_and_run(context, live, held, settlement, progress)
        except InfraFault as fault:
            log.event("attempt_fault", jobId=claimed.job_id, detail=fault.detail)
            verdict = Verdict(outcome=Outcome.FAILED, reason=fault.reason, retry=True)
            settlement.fail_or_repeat(verdict, progress.known, reserved=False)
    if put_off is not None and put_off.scope_hash and not host.scopes.is_held(put_off.scope_hash):
        # It was freed between our look and our falling asleep: nobody else will wake this one.
        wake_next(host, put_off.scope_hash)


def _admit_and_run(
    context: Context, live: LiveAttempt, held: ExitStack, settlement: Settlement, progress: _Progress
) -> Defer | None:
    answer = climb(LADDER, context, held, now=context.now, stop_asked=context.abort.is_set)
    match answer:
        case None:
            settlement.give_back("shutdown")
        case Defer():
            return answer if settlement.put_off(answer) else None
        case Refusal():
            settlement.refuse(answer, progress.known)
        case Pass():
            _pay_and_run(context, live, settlement, progress)
    return None


def _pay_and_run(context: Context, live: LiveAttempt, settlement: Settlement, progress: _Progress) -> None:
    granted = reserve(context)
    if isinstance(granted, Blocked):
        settlement.refuse(
            Refusal(granted.reason),
            progress.known,
            window=granted.window.value,
            reserved=granted.reserved,
            cap=granted.cap,
        )
        return
    progress.granted = granted
    result = carry_out(context, live, on_asking=lambda: setattr(progress, "asked_for_container", True))
    match result:
        case NotBegun():
            # Refund first, then the transition: a crash in between must not leave a free start behind.
            refund(context.host, context.claimed)
            if not result.lost:
                settlement.give_back("switch" if result.held else "shutdown")
        case Ended(verdict=verdict, ran=ran):
            if verdict.refund:
                refund(context.host, context.claimed)
            settlement.fail_or_repeat(verdict, progress.known, reserved=not verdict.refund, ran=ran)


def _known(known: Known, context: Context) -> Known:
    return Known(
        started_at=known.started_at,
        provider=context.effective.provider,
        model=context.effective.model,
        scope_hash=context.scope_hash,
    )


def _broken(
    host: Host, claimed: Claimed, settlement: Settlement, progress: _Progress, error: Exception
) -> None:
    """Settle what our own bug, or a configuration that no container may have, left in hand: never retried."""
    log.event("attempt_error", jobId=claimed.job_id, error=type(error).__name__)
    try:
        paid = progress.granted is not None
        if progress.granted is not None and not progress.asked_for_container:
            refund(host, claimed)
            paid = False
        is_configuration = isinstance(error, ConfigurationError) and not progress.asked_for_container
        verdict = (
            Verdict(outcome=Outcome.POLICY, reason=Reason.CONFIG_REFUSED)
            if is_configuration
            else Verdict(outcome=Outcome.FAILED)
        )
        settlement.fail_or_repeat(verdict, progress.known, reserved=paid)
    except GaveUpError:
        log.event("job_left_behind", jobId=claimed.job_id)
    except Exception as second:  # noqa: BLE001 - nothing may end the thread with slot and folder unsettled
        log.event("attempt_unsettled", jobId=claimed.job_id, error=type(second).__name__)
