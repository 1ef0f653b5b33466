"""The wait conditions as a rung: what a job waits for is asked of `dispatch.waits` (Q 3.1 gate 2, 9)."""

from __future__ import annotations

import time
from datetime import timedelta

from dispatch.ids import is_closing, slot_of, target_label, window_key
from dispatch.jobdata import ForgeTrigger, JobData
from dispatch.rungs import Defer, Pass, Taking
from dispatch.waits.gate import WaitingJob
from dispatch.worker.context import Context
from dispatch.worker.patience import patiently
from runs.outcome import Refusal


def _take(context: Context) -> Pass | Defer | Refusal:
    host, job = context.host, context.job
    if not job.wait_for:
        return Pass()
    waiting = waiting_job(context.claimed.job_id, context.claimed.token, job)
    began = time.monotonic()

    def judge() -> Pass | Defer | Refusal:
        # A repeat after an outage is asked as of then.
        now = context.now + timedelta(seconds=time.monotonic() - began)
        return host.waits.judge(waiting, now=now, stop=context.abort.is_set)

    return patiently(host, judge)


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


WAIT: Taking[Context] = Taking(name="wait", take=_take)
