"""Whether this version can do what the job asks for: what is not built yet is refused (contracts 5)."""

from __future__ import annotations

from datetime import datetime

from dispatch.jobs import unavailable_field
from dispatch.rungs import Judging, Pass
from dispatch.worker.context import Context
from runs.outcome import Reason, Refusal


def _judge(field: str | None, now: datetime) -> Pass | Refusal:
    del now
    return Pass() if field is None else Refusal(Reason.NOT_AVAILABLE, field)


AVAILABLE: Judging[Context] = Judging(
    name="available",
    read=lambda context: unavailable_field(context.job, kinds=context.host.work.kinds),
    judge=_judge,
)
