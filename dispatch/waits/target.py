"""What a job is to the wait gate: the target that its checks are told, and what waiting jobs coalesce by."""

from __future__ import annotations

from dispatch.ids import is_closing, slot_of, target_label, window_key
from dispatch.jobdata import ForgeTrigger, JobData
from dispatch.waits.visit import WaitingJob


def waiting_job(job_id: str, token: str, job: JobData) -> WaitingJob:
    """Describe a job to the wait gate; a local one has no target, and its check is told its id."""
    target, repo, trigger = job.target, job.repo, job.trigger
    if target is None or repo is None or not isinstance(trigger, ForgeTrigger):
        return WaitingJob(
            job_id=job_id,
            token=token,
            conditions=job.wait_for,
            label=job_id,
            identity=None,
        )
    matched = trigger.matched
    meaning = window_key(
        job.kind,
        repo=repo,
        target=target.type,
        number=target.number,
        slot=slot_of(flow=job.flow, command=job.command),
        closing=is_closing(job.kind, matched_type=matched.type, matched_action=matched.action),
        replica=job.replica,
    )
    return WaitingJob(
        job_id=job_id,
        token=token,
        conditions=job.wait_for,
        label=target_label(job.kind, repo=repo, target=target.type, number=target.number),
        identity=f"{meaning}#{matched.index}",
    )
