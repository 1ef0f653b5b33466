"""From a paid attempt to a judged one: begin, the container, and what its last words say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from dispatch.queue.transitions import Slot, Step
from dispatch.worker.context import Context
from dispatch.worker.live import LiveAttempt
from dispatch.worker.patience import patiently
from pidispatch_site import log
from runs import exitline
from runs.container import ContainerSpec, build_spec
from runs.exits import RUNNER_WORDS, classify, ran_out_of_memory
from runs.outcome import Verdict
from runs.recording import Ran
from runs.request import RunRequest
from runs.result import RunResult

_WHY = {Step.HELD: "switch", Step.DENIED: "fleet-slot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBegun:
    """No container was asked for; somebody else had the job (`lost`), or `why` it is given back."""

    why: str = "shutdown"
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The attempt's container is over, or never came to be; `ran` is what the record takes from it.

    `gone` is its name if the engine said that nothing of it is left; else the reaper removes it.
    """

    verdict: Verdict
    ran: Ran
    gone: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The attempt's container as it will be asked for, and when it ends itself."""

    spec: ContainerSpec
    deadline: datetime


def plan(context: Context) -> Planned:
    """Describe the attempt's container as of now; ConfigurationError for one that nobody may have."""
    timings = context.host.timings
    deadline = context.host.utc_now() + timedelta(seconds=timings.job_limit + timings.deadline_slack)
    return Planned(spec=build_spec(_request(context, deadline)), deadline=deadline)


def carry_out(
    context: Context, live: LiveAttempt, planned: Planned, *, on_asking: Callable[[], None]
) -> NotBegun | Ended:
    """Begin the job and run its container to the end; `on_asking` is called right before create."""
    host, claimed = context.host, context.claimed
    live.container = planned.spec.name
    if context.abort.is_set():
        return NotBegun()
    step = _begin(context, planned)
    if step is not Step.DONE:
        if step is Step.LOST:
            log.event("transition_lost", jobId=claimed.job_id, transition="begin")
        return NotBegun(why=_WHY.get(step, "shutdown"), lost=step is Step.LOST)
    live.has_begun = True
    log.event("job_started", jobId=claimed.job_id, attempt=claimed.attempt)
    spec = _still_in_time(context, planned).spec
    raw_log = host.places.raw_log_of(claimed.job_id)
    on_asking()
    return _run(context, spec, raw_log)


def _begin(context: Context, planned: Planned) -> Step:
    """Begin it, however long Valkey takes; while no container could be listed, the job waits in our hand.

    As through an outage: given back it would be popped again at once, and other hosts' jobs go on.
    """
    host, claimed, told = context.host, context.claimed, False
    slot = host.leases.slot(context.lease) if host.leases and context.lease else None
    while True:
        deadline_ms = round(_still_in_time(context, planned).deadline.timestamp() * 1000)
        step = patiently(host, partial(_ask, context, planned.spec.name, deadline_ms, slot))
        if step is not Step.UNLISTED or context.abort.is_set():
            return step
        if not told:
            log.event("containers_unreadable", jobId=claimed.job_id)
            told = True
        if host.stopping.wait(host.timings.pause_recheck):
            return step


def _ask(context: Context, container: str, deadline_ms: int, slot: Slot | None) -> Step:
    return context.host.transitions.begin(
        context.claimed, container=container, deadline_ms=deadline_ms, slot=slot
    )


def _still_in_time(context: Context, planned: Planned) -> Planned:
    """Plan anew if Valkey kept us waiting so long that the container would end itself too early."""
    timings = context.host.timings
    left = (planned.deadline - context.host.utc_now()).total_seconds()
    return planned if left > timings.job_limit + timings.deadline_slack / 2 else plan(context)


def _run(context: Context, spec: ContainerSpec, raw_log: Path | None) -> Ended:
    host, job_id = context.host, context.claimed.job_id
    gone: list[str] = []
    result = host.work.runs.run(
        spec,
        abort=context.abort,
        time_limit=timedelta(seconds=host.timings.job_limit),
        raw_log=raw_log,
        on_gone=gone.append,
    )
    said = exitline.read(result.tail)
    log.event(
        "container_exit",
        jobId=job_id,
        exitCode=result.exit_code,
        aborted=result.abort_reason is not None,
        fault=result.fault,
        # Said only when they are so.
        oomKilled=ran_out_of_memory(result) or None,
        logTruncated=result.log_truncated or None,
        said=said.reason if said.reason in RUNNER_WORDS else None,
    )
    return Ended(
        verdict=classify(result, said, asked=context.abort.reason),
        ran=_ran(context, result, said),
        gone=gone[0] if gone else None,
    )


def _ran(context: Context, result: RunResult, said: exitline.ExitLine) -> Ran:
    return Ran(
        exit_code=result.exit_code,
        turns=said.turns,
        tokens=exitline.recorded_tokens(said.tokens),
        usage=said.usage,
        session=said.session,
        image_digest=context.image.id if context.image else None,
    )


def _request(context: Context, deadline: datetime) -> RunRequest:
    host, claimed, job, prepared = context.host, context.claimed, context.job, context.prepared
    if prepared is None:
        raise RuntimeError("a container is asked for after its workspace was prepared")
    return RunRequest(
        job_id=claimed.job_id,
        attempt=claimed.attempt,
        token=claimed.token,
        boot=host.owner.boot,
        host_id=host.owner.host_id,
        kind=job.kind.value,
        scope_hash=context.scope_hash,
        image=context.effective.image,
        provider=context.effective.provider,
        model=context.effective.model,
        max_turns=context.effective.max_turns,
        max_tokens=context.effective.max_tokens,
        flow=job.flow,
        command=job.command,
        job_dir=prepared.job_dir,
        workspace=prepared.workspace,
        outbox=prepared.outbox,
        global_pi_dir=host.places.global_pi_dir,
        global_allow_extensions=host.places.global_allow_extensions,
        user=prepared.user,
        # The order of E 1.3: what is forwarded comes after the provider's own.
        credentials={**context.credentials.variables, **host.forwarded},
        deadline=deadline,
    )
