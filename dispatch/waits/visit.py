"""One waiting job at the gate: what is known of it, and how it is sent back to sleep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from dispatch.instants import instant_of
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer
from dispatch.waits.conditions import Conditions
from dispatch.waits.holds import Waiter
from runs.outcome import Refusal

Objection = Defer | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBounds:
    """How often and how long jobs may wait, as the configuration says; times in milliseconds."""

    interval_ms: int
    max_ms: int
    after_max_ms: int
    max_checks: int
    max_faults: int
    slots: int
    check_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """What the gate needs of a job in hand.

    `job_id` is its natural id, `token` that of its pop, `conditions` what it waits for as it arrived. `label`
    is the one argument of its checks: `<repo><mark><number>` of a forge job, the job id of a local one.
    `identity` is `<semantic key>#<index of its trigger>`, what waiting jobs coalesce by; None: with nobody.
    """

    job_id: str
    token: str
    conditions: tuple[object, ...] | None
    label: str
    identity: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A job with its conditions. `now` is the instant of its pick-up, `now_ms` tells that of the call."""

    job: WaitingJob
    conditions: Conditions
    now: datetime
    now_ms: Callable[[], int]
    stop: Callable[[], bool]

    @property
    def waiter(self) -> Waiter:
        """The job as its hold names it."""
        job, label = self.job, self.conditions.label or ""
        return Waiter(job_id=job.job_id, target=job.label, label=label, identity=job.identity)


def sleep(now_ms: int, delay_ms: int, **said: object) -> Defer:
    """Send it back to sleep; `said` is what the log tells of it, if no event has told it already."""
    until = instant_of(now_ms + delay_ms)
    return Defer(until=until, reason=WaitReason.WAIT, said=said, is_told=not said)
