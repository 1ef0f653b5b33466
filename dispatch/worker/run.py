"""From a paid attempt to a judged one: begin, the container, and what its last words say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from dispatch.queue.transitions import Step
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBegun:
    """No container was asked for: a switch `held`, somebody else had the job (`lost`), or a shutdown."""

    held: bool = False
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
    deadline_ms = round(planned.deadline.timestamp() * 1000)
    step = patiently(
        host,
        lambda: host.transitions.begin(claimed, container=planned.spec.name, deadline_ms=deadline_ms),
    )
    if step is not Step.DONE:
        if step is Step.LOST:
            log.event("transition_lost", jobId=claimed.job_id, transition="begin")
        return NotBegun(held=step is Step.HELD, lost=step is Step.LOST)
    live.has_begun = True
    log.event("job_started", jobId=claimed.job_id, attempt=claimed.attempt)
    spec = _still_in_time(context, planned).spec
    raw_log = host.places.raw_log_of(claimed.job_id)
    on_asking()
    return _run(context, spec, raw_log)


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
