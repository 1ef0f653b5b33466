"""Following one job to its end, for `run --wait` and the demo: each change of state, then how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dispatch.queue.results import ending
from dispatch.queue.states import Standing, State, look
from pidispatch_site.errors import OperationalError
from runs.files import RecordFiles
from runs.outcome import Outcome
from runs.record import Record

if TYPE_CHECKING:
    import redis

EXIT_CODES = {Outcome.COMPLETED: 0, Outcome.FAILED: 1, Outcome.POLICY: 2}
_LOOK_SECONDS = 0.1
_RECORD_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the job ended; `record` is None when another host keeps it."""

    outcome: Outcome
    reason: str | None
    record: Record | None


def follow(
    client: redis.Redis,
    logs_dir: Path,
    job_id: str,
    *,
    say: Callable[[str], object],
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Wait for the end of a job, saying each change of its state with the seconds since the start."""
    began, shown = clock(), ""
    while True:
        standing = look(client, job_id)
        if standing is None:
            raise OperationalError(f"job {job_id} is no longer in the queue: it was cancelled or has expired")
        told = _told(standing)
        if told != shown:
            say(f"{clock() - began:6.1f} s  {told}")
            shown = told
        if standing.state.is_over:
            return _ending(client, logs_dir, job_id, standing, sleep=sleep, clock=clock)
        sleep(_LOOK_SECONDS)


def _told(standing: Standing) -> str:
    match standing.state:
        case State.SCHEDULED:
            return f"sleeping ({standing.reason or 'no reason given'})"
        case State.IN_HAND:
            return f"taken by {standing.host or 'a worker'}"
        case State.STARTED:
            return f"running on {standing.host or 'a worker'}"
        case _:
            return standing.state.value


def _ending(
    client: redis.Redis,
    logs_dir: Path,
    job_id: str,
    standing: Standing,
    *,
    sleep: Callable[[float], object],
    clock: Callable[[], float],
) -> Ending:
    """Read the record, which is written a moment after the end; without one the queue's own word."""
    files, deadline = RecordFiles(logs_dir), clock() + _RECORD_SECONDS
    while clock() < deadline:
        record = files.find(job_id)
        if record is not None and record.final:
            return Ending(outcome=record.outcome, reason=record.reason, record=record)
        sleep(_LOOK_SECONDS)
    token = ending(client, job_id)
    if standing.state is State.FAILED:
        return Ending(outcome=Outcome.FAILED, reason=token, record=None)
    outcome = Outcome.COMPLETED if token == Outcome.COMPLETED else Outcome.POLICY
    return Ending(outcome=outcome, reason=None if outcome is Outcome.COMPLETED else token, record=None)
