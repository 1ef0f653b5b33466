"""One-shots as a rung: what another job has spent is not run again (Q 3.4 a).

A file that cannot be read or has changed stands in nobody's way; the fleet's claim lets one job through.
"""

from __future__ import annotations

from dispatch.jobs import ForgeTrigger, encode
from dispatch.rungs import Pass, Taking
from dispatch.triggers.claims import Claims
from dispatch.triggers.disarm import look
from dispatch.triggers.one_shots import Armed, Spent
from dispatch.worker.context import Context
from dispatch.worker.patience import patiently
from runs.oneshot import OneShot, one_shot_of
from runs.outcome import Reason, Refusal


def _take(context: Context) -> Pass | Refusal:
    host, job_id = context.host, context.claimed.job_id
    once = _one_shot(context)
    if once is None:
        return Pass()
    found = look(host.triggers_path, once)
    if isinstance(found, Spent):
        # Its own retry still runs.
        return Pass() if found.by == job_id else _refused(once)
    claims = Claims(host.client, host.owner.host_id)
    holder = patiently(
        host,
        lambda: claims.claim(
            once, job_id, is_armed=lambda: isinstance(look(host.triggers_path, once), Armed)
        ),
    )
    return Pass() if holder == job_id else _refused(once, heldBy=holder)


def _one_shot(context: Context) -> OneShot | None:
    trigger = context.job.trigger
    if not isinstance(trigger, ForgeTrigger) or not trigger.matched.once:
        return None
    return one_shot_of(encode(context.job)["data"])


def _refused(once: OneShot, **said: str) -> Refusal:
    return Refusal(Reason.ONCE_ALREADY_SPENT, said={"triggerIndex": once.index, **said})


ONCE: Taking[Context] = Taking(name="once", take=_take)
