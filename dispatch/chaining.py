"""Follow-up jobs (Q 3.10, E 7.1): a local job that went well may ask for a few more on its own folder.

What it asks for is untrusted, and its own run is over: nothing here raises, whatever is in the outbox.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dispatch.ids import Kind, chained_id
from dispatch.jobrules import is_flow_name
from dispatch.jobs import JobData, local_job
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.producer import Exists, Producer
from dispatch.queue.states import is_held
from dispatch.worker.context import Context
from dispatch.worker.patience import patiently
from pidispatch_site import log
from pidispatch_site.errors import ConfigurationError
from runs.outbox import ChainReason, Rejected, Request, read_requests
from runs.outcome import Outcome, Verdict
from runs.recording import Ran
from runs.workspace.git import GitTimeoutError
from runs.workspace.local import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Chained:
    """What became of the requests of one job; a child that exists already counts as enqueued."""

    enqueued: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class _Child:
    """A follow-up job that waits in the queue; `exists`: it was known there already."""

    job_id: str
    exists: bool


def chain(context: Context, verdict: Verdict, ran: Ran) -> Ran:
    """Enqueue what a completed local job asked for, and answer what its record says then. Never raises.

    Right before `end`: the container is gone, and the job directory still there.
    """
    prepared = context.prepared
    if context.job.kind is not Kind.LOCAL or verdict.outcome is not Outcome.COMPLETED or prepared is None:
        return ran
    return replace(ran, chain_refused=_collect(context, prepared).refused)


def _collect(context: Context, prepared: Prepared) -> Chained:
    enqueued = refused = 0
    allows = _gate(context, prepared)
    for asked in _requests(context, prepared):
        answer = _handled(context, allows, asked)
        _tell(context, asked, answer)
        if isinstance(answer, Rejected):
            refused += answer.count
        else:
            enqueued += 1
    return Chained(enqueued=enqueued, refused=refused)


def _gate(context: Context, prepared: Prepared) -> Callable[[str], bool]:
    """Make the answer to which flows the folder lets a job start; one that came too late ends the asking.

    The parent's slot and its folder wait for the answers.
    """
    is_silent = False

    def allows(flow: str) -> bool:
        nonlocal is_silent
        try:
            return not is_silent and context.host.work.flow_allows(
                prepared.workspace, flow, context.first_sha
            )
        except GitTimeoutError:
            is_silent = True
            return False

    return allows


def _requests(context: Context, prepared: Prepared) -> tuple[Request | Rejected, ...]:
    try:
        return read_requests(prepared.outbox, most=context.host.chain_max_per_job)
    except Exception as error:  # noqa: BLE001 - our own bug must not cost the parent its end
        return (Rejected(None, ChainReason.COLLECT_ERROR, type(error).__name__),)


def _handled(context: Context, allows: Callable[[str], bool], asked: Request | Rejected) -> _Child | Rejected:
    """Make a request a job, or say why it becomes none; one that fails holds up no other."""
    if isinstance(asked, Rejected):
        return asked
    try:
        child = _child(context, asked)
        if isinstance(child, ChainReason):
            return Rejected(asked.index, child)
        if not allows(asked.flow):
            return Rejected(asked.index, ChainReason.GATE_DENY)
        return _enqueued(context, asked, child)
    except Exception as error:  # noqa: BLE001 - as above; a Valkey that is away until we stop included
        return Rejected(asked.index, ChainReason.COLLECT_ERROR, type(error).__name__)


def _child(context: Context, asked: Request) -> JobData | ChainReason:
    """Build the child: the parent's folder, image and skills, and nothing else of the parent's."""
    parent = context.job
    if not is_flow_name(asked.flow):
        return ChainReason.BAD_FLOW_NAME
    try:
        child = local_job(parent.folder or "", flow=asked.flow, task=asked.task, image=parent.image)
    except ConfigurationError:
        return ChainReason.PARSE_ERROR
    depth = (parent.chain_depth or 0) + 1
    if depth > context.host.chain_depth_max:
        return ChainReason.DEPTH_CAP
    return replace(
        child, skills_dir=parent.skills_dir, chain_depth=depth, parent_job_id=context.claimed.job_id
    )


def _enqueued(context: Context, asked: Request, child: JobData) -> _Child | Rejected:
    host, claimed = context.host, context.claimed
    child_id = chained_id(claimed.job_id, flow=child.flow, task=child.task)
    # Who was frozen so long that the job was taken away adds nothing to it any more.
    if not patiently(host, lambda: is_held(host.client, claimed)):
        return Rejected(asked.index, ChainReason.COLLECT_ERROR, "lost")
    producer = Producer(host.client)
    answer = patiently(
        host,
        lambda: producer.enqueue(
            host.own_queue, child_id, child, keeping=LOCAL, scope_hash=context.scope_hash
        ),
    )
    return _Child(child_id, exists=isinstance(answer, Exists))


def _tell(context: Context, asked: Request | Rejected, answer: _Child | Rejected) -> None:
    """Log it: ids of ours, the place of the request, and a word of ours; nothing of what it says."""
    parent = context.claimed.job_id
    if isinstance(answer, Rejected):
        log.event(answer.reason.value, jobId=parent, reason=answer.detail, index=answer.index)
    else:
        known = "exists" if answer.exists else None
        log.event("chain-enqueued", jobId=parent, reason=known, index=asked.index, child=answer.job_id)
