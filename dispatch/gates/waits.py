"""The wait conditions as a rung: what a job waits for is asked of `dispatch.waits` (Q 3.1 gate 2, 9)."""

from __future__ import annotations

from dispatch.rungs import Defer, Pass, Taking
from dispatch.waits.target import waiting_job
from dispatch.worker.context import Context
from dispatch.worker.patience import patiently
from runs.outcome import Refusal


def _take(context: Context) -> Pass | Defer | Refusal:
    host, job = context.host, context.job
    if not job.wait_for:
        return Pass()
    waiting = waiting_job(context.claimed.job_id, context.claimed.token, job)

    def judge() -> Pass | Defer | Refusal:
        # A repeat after an outage is asked as of then.
        return host.waits.judge(waiting, now=context.as_of_now(), stop=context.abort.is_set)

    return patiently(host, judge)


WAIT: Taking[Context] = Taking(name="wait", take=_take)
