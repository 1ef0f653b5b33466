"""The folder mutex as a rung: one job per folder on this host, the next one sleeps until it is free."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Held, Pass, Taking
from dispatch.worker.context import Context
from dispatch.worker.host import Host
from pidispatch_site.clients import VALKEY_FAULTS

_ONE_PER_FOLDER = 1


def _take(context: Context) -> Pass | Held | Defer:
    host, scope_hash = context.host, context.scope_hash
    if scope_hash is None or context.job.kind.is_forge:
        return Pass()
    if not host.scopes.try_take(scope_hash, _ONE_PER_FOLDER):
        return Defer(
            until=context.now + timedelta(seconds=host.timings.scope_recheck),
            reason=WaitReason.SCOPE_BUSY,
            scope_hash=scope_hash,
        )
    return Held(lambda: _free(host, scope_hash))


def _free(host: Host, scope_hash: str) -> None:
    if host.scopes.give_back(scope_hash):
        wake_next(host, scope_hash)


def wake_next(host: Host, scope_hash: str) -> None:
    """Wake the oldest sleeper of a free folder; when Valkey does not answer, its re-check wakes it."""
    with suppress(*VALKEY_FAULTS):
        if host.waiters.wake_oldest(host.queues, WaitReason.SCOPE_BUSY, scope_hash):
            host.job_woken()
        else:
            host.scopes.nobody_waits(scope_hash)


FOLDER: Taking[Context] = Taking(name="folder", take=_take)
