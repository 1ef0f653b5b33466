"""The scope slot as a rung: one job per folder, of a repository as many as its limit says (Q 3.1, 5.3)."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from dispatch.operator_files.scoped_limits import ceiling
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Held, Pass, Taking
from dispatch.worker.context import Context
from dispatch.worker.host import Host
from pidispatch_site.clients import VALKEY_FAULTS


def _take(context: Context) -> Pass | Held | Defer:
    host, scope_hash = context.host, context.scope_hash
    if scope_hash is None:
        return Pass()
    context.limit = host.rules.scoped_limits().of(context.scope)
    limit = ceiling(context.limit, is_forge=context.job.kind.is_forge)
    if not host.scopes.try_take(scope_hash, limit):
        return Defer(
            until=context.as_of_now() + timedelta(seconds=host.timings.scope_recheck),
            reason=WaitReason.SCOPE_BUSY,
            scope_hash=scope_hash,
        )
    return Held(lambda: _free(host, scope_hash))


def has_room(context: Context) -> bool:
    """Tell whether the attempt's scope could be taken now."""
    limit = ceiling(context.limit, is_forge=context.job.kind.is_forge)
    return context.scope_hash is None or context.host.scopes.has_room(context.scope_hash, limit)


def _free(host: Host, scope_hash: str) -> None:
    if host.scopes.give_back(scope_hash):
        wake_next(host, scope_hash)


def wake_next(host: Host, scope_hash: str) -> None:
    """Wake the oldest sleeper of a scope with room; when Valkey does not answer, its re-check wakes it."""
    with suppress(*VALKEY_FAULTS):
        if host.waiters.wake_oldest(host.queues, WaitReason.SCOPE_BUSY, scope_hash):
            host.job_woken()
        else:
            host.scopes.nobody_waits(scope_hash)


SCOPE: Taking[Context] = Taking(name="scope", take=_take)
