"""The pause windows as a rung: inside one a job sleeps to its exact end (Q 3.1 gate 1, 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dispatch.operator_files.pause_windows import PauseWindow, paused_until
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Judging, Pass
from dispatch.worker.context import Context


def _read(context: Context) -> tuple[Sequence[PauseWindow], str | None]:
    return context.host.rules.pause_windows(), context.job.pause_scope


def _judge(facts: tuple[Sequence[PauseWindow], str | None], now: datetime) -> Pass | Defer:
    windows, scope = facts
    until = paused_until(windows, scope, now)
    return Pass() if until is None else Defer(until=until, reason=WaitReason.PAUSE_WINDOW)


PAUSE_WINDOW: Judging[Context] = Judging(name="pause window", read=_read, judge=_judge)
