"""Following one job to its end, for `run --wait` and the demo: each change of state, then how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dispatch.console.instants import stamp
from dispatch.console.lookup import asleep, why_it_waits
from dispatch.console.standing import ended_as
from dispatch.console.waiting import sleep_of, wakes_ms
from dispatch.queue.results import ending
from dispatch.queue.states import Standing, State, look
from dispatch.queue.waiters import WaitReason
from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.errors import OperationalError
from runs.files import RecordFiles
from runs.outcome import Outcome
from runs.record import Record

if TYPE_CHECKING:
    import redis

EXIT_CODES = {Outcome.COMPLETED: 0, Outcome.FAILED: 1, Outcome.POLICY: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the job ended; `record` is None when another host keeps it."""

    outcome: Outcome
    reason: str | None
    record: Record | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds: between two looks, between two looks at why it waits, for a record to come, for Valkey."""

    look: float = 0.1
    why: float = 1
    record: float = 10
    valkey: float = 60


class Follower:
    """Watches one job for a person at this host; what is said is one line a change, with the time passed.

    `here` is this host's worker name: the record of a job that ran elsewhere is not waited for.
    """

    def __init__(
        self,
        client: redis.Redis,
        job_id: str,
        *,
        logs_dir: Path,
        here: str,
        say: Callable[[str], object],
        patience: Patience | None = None,
    ) -> None:
        self._client = client
        self._job_id = job_id
        self._files = RecordFiles(logs_dir)
        self._here = here
        self._say = say
        self._patience = patience or Patience()
        self._began = time.monotonic()
        self._told = ""
        self._ran_on: str | None = None
        self._answered = self._asked_why = self._began
        self._why: str | None = None

    def to_the_end(self) -> Ending:
        """Watch until it has ended.

        `OperationalError` when it was taken out of the queue, or Valkey stays away too long; an interrupt by
        the person comes through. None of them touches the job.
        """
        while True:
            try:
                found = self._look()
                if found is not None:
                    return found
                self._answered = time.monotonic()
            except VALKEY_FAULTS as fault:
                self._tell("Valkey does not answer; watching again when it does")
                if time.monotonic() - self._answered > self._patience.valkey:
                    raise OperationalError(
                        f"Valkey has not answered for {self._patience.valkey:.0f} s; job {self._job_id} stays"
                        " where it is and goes on without this command."
                    ) from fault
            time.sleep(self._patience.look)

    def _look(self) -> Ending | None:
        standing = look(self._client, self._job_id)
        if standing is None or standing.state is State.OTHER:
            raise OperationalError(
                f"Job {self._job_id} is no longer in the queue: it was cancelled, or its time is over."
            )
        self._ran_on = standing.host or self._ran_on
        if not standing.state.is_over:
            self._tell(self._described(standing))
            return None
        found = self._ending(standing)
        self._tell(f"{found.outcome.value} ({found.reason})" if found.reason else found.outcome.value)
        return found

    def _tell(self, text: str) -> None:
        if text != self._told:
            self._say(f"{time.monotonic() - self._began:7.1f} s  {text}")
            self._told = text

    def _described(self, standing: Standing) -> str:
        match standing.state:
            case State.SCHEDULED:
                return self._sleep(standing)
            case State.IN_HAND:
                return f"taken by {standing.host or 'a worker'}"
            case State.STARTED:
                return f"running on {standing.host or 'a worker'}"
            case _:
                why = self._why_queued(standing.queue)
                return f"queued; {why}" if why else "queued"

    def _sleep(self, standing: Standing) -> str:
        """Say why it sleeps; the hour only where it is the end, since other sleeps are often renewed."""
        entry = asleep(self._client, self._job_id, standing.queue)
        if entry is None:
            # It woke since; the next look tells what it does.
            return self._told
        words = sleep_of(entry.reason, entry.cause)
        told = f"asleep: {words.brief}"
        until_ms = wakes_ms(entry, entry.until_ms - 1) if entry.until_ms else None
        if words.is_exact and until_ms is not None:
            told += f", until {stamp(until_ms)}"
        if entry.reason == WaitReason.RETRY:
            told += f" (attempt {entry.attempt + 1} of {entry.attempts})"
        return told

    def _why_queued(self, queue: str) -> str | None:
        """Ask now and then, and not at once: a job that is taken in a moment waits for nothing."""
        if time.monotonic() - self._asked_why >= self._patience.why:
            self._why = why_it_waits(self._client, queue)
            self._asked_why = time.monotonic()
        return self._why

    def _ending(self, standing: Standing) -> Ending:
        """Read the record, which is written a moment after the end; without one the queue's own word."""
        is_ours = self._ran_on in (None, self._here)
        deadline = time.monotonic() + (self._patience.record if is_ours else 0)
        while True:
            record = self._files.find(self._job_id)
            if record is not None and record.final:
                return Ending(outcome=record.outcome, reason=record.reason, record=record)
            if time.monotonic() >= deadline:
                break
            time.sleep(self._patience.look)
        outcome, reason = ended_as(standing.state, ending(self._client, self._job_id))
        return Ending(outcome=outcome, reason=reason, record=None)
