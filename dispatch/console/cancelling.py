"""Cancelling jobs wherever they stand: what waits is taken out, what runs is stopped by its worker.

Between a look and a step a job may have moved on: it is looked at again, until it is out of the queue, its
worker has answered, or it has ended.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dispatch.console.obstacles import QueueFacts
from dispatch.console.standing import ended_as
from dispatch.ids import rq_id
from dispatch.jobs import JobData
from dispatch.money.ledger import Ledger
from dispatch.queue import keys, results
from dispatch.queue.dropping import Drop, drop
from dispatch.queue.place import Place, find
from dispatch.queue.states import State
from dispatch.waits.holds import Holds
from dispatch.waits.target import waiting_job
from hosts import stops
from pidispatch_site.clients import VALKEY_FAULTS
from runs.outcome import Outcome, Reason

if TYPE_CHECKING:
    import redis


class Fate(StrEnum):
    """What became of a request to cancel.

    DROPPED: it never runs (again); recorded if it had run. STOPPING: its worker answered. CANCELLED: it has
    ended so. ENDED: it had ended otherwise. UNANSWERED: nobody answered, the request is withdrawn. UNKNOWN:
    no such job.
    """

    DROPPED = "dropped"
    STOPPING = "stopping"
    CANCELLED = "cancelled"
    ENDED = "ended"
    UNANSWERED = "unanswered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """One job of a request. `given` is what the person wrote, `job_id` the natural id.

    `state` is where it stood last, in its `attempt` (from 0). `host` has it or answered, silent for
    `silent_ms` (None: it lives). `outcome` and `reason`: how it ended.
    """

    given: str
    fate: Fate
    job_id: str
    state: State | None = None
    attempt: int = 0
    host: str | None = None
    silent_ms: int | None = None
    outcome: Outcome | None = None
    reason: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether the job is out of the queue, or stopped or being stopped as it was asked."""
        return self.fate in {Fate.DROPPED, Fate.STOPPING, Fate.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds: for an answer, and between two looks."""

    answer: float = 10
    look: float = 0.25


def cancel(
    client: redis.Redis, given: Sequence[str], *, patience: Patience | None = None
) -> tuple[Cancelled, ...]:
    """Cancel these jobs, by natural id or as RQ writes it, side by side; each comes to one fate.

    Raises redis-py's errors; one that comes while an answer is waited for only once the time is over.
    """
    patience = patience or Patience()
    ends = time.monotonic() + patience.answer
    orders = [_Order(client, one) for one in dict.fromkeys(given)]
    while open_orders := [one for one in orders if one.fate is None]:
        is_over = time.monotonic() >= ends
        for order in open_orders:
            _take_step(order, is_over=is_over)
        if any(one.fate is None for one in orders):
            time.sleep(max(0.0, min(patience.look, ends - time.monotonic())))
    return tuple(one.fate for one in orders if one.fate is not None)


def _take_step(order: _Order, *, is_over: bool) -> None:
    if is_over:
        order.give_up()
        return
    try:
        order.step()
    except VALKEY_FAULTS:
        # Nothing was done yet: whoever waits at the terminal should know at once.
        if not order.has_acted:
            raise


class _Order:
    """One job to be cancelled; `fate` once it is known."""

    def __init__(self, client: redis.Redis, given: str) -> None:
        self._client = client
        self._given = given
        self._request_id = secrets.token_hex(8)
        self._is_asked = False
        self._place: Place | None = None
        self.has_acted = False
        self.fate: Cancelled | None = None

    def step(self, *, is_last: bool = False) -> None:
        """Look where the job stands, and do what is to be done there; the last look asks nobody."""
        found = find(self._client, self._given)
        if found is None:
            # It was there before: taken out by a step whose answer was lost, or by somebody else.
            self._end(Fate.DROPPED if self._place else Fate.UNKNOWN)
            return
        self._place = found
        if found.entry.state.is_waiting:
            self._drop(found)
        elif found.entry.state is not State.STARTED:
            self._tell_the_end(found)
        elif self._is_asked:
            self._hear(found.entry.job_id)
        elif not is_last:
            self.has_acted = self._is_asked = True
            stops.ask_cancel(self._client, found.entry.job_id, request_id=self._request_id)

    def give_up(self) -> None:
        """Take the request back; what came about meanwhile counts all the same."""
        if self._is_asked and self._place:
            job_id = self._place.entry.job_id
            host = stops.withdraw_cancel(self._client, job_id, request_id=self._request_id)
            if host:
                self._end(Fate.STOPPING, host=host)
                return
        self.step(is_last=True)
        if self.fate is None:
            self._end(Fate.UNANSWERED)

    def _drop(self, place: Place) -> None:
        self.has_acted = True
        entry = place.entry
        if drop(self._client, entry.job_id) in {Drop.DROPPED, Drop.ABSENT}:
            # A pop that was killed between its reservation and the start has nobody else left to pay it back.
            Ledger(self._client).refund_dropped(
                entry.job_id,
                entry.attempt,
                job_key=keys.job(rq_id(entry.job_id).encode()),
                first_queued_ms=entry.first_queued_ms or 0,
            )
            if isinstance(place.job, JobData) and place.job.wait_for:
                waiting = waiting_job(place.entry.job_id, "", place.job)
                Holds(self._client).release(waiting.job_id, waiting.identity)
            self._end(Fate.DROPPED)

    def _hear(self, job_id: str) -> None:
        host = stops.cancel_answers(self._client, (job_id,)).get(job_id)
        if host:
            self._end(Fate.STOPPING, host=host)

    def _tell_the_end(self, place: Place) -> None:
        entry = place.entry
        outcome, reason = None, None
        if entry.state.is_over:
            outcome, reason = ended_as(entry.state, results.ending(self._client, entry.job_id))
        fate = Fate.CANCELLED if reason == Reason.OPERATOR_CANCEL else Fate.ENDED
        self._end(fate, host=place.ran_on, outcome=outcome, reason=reason)

    def _end(
        self,
        fate: Fate,
        *,
        host: str | None = None,
        outcome: Outcome | None = None,
        reason: str | None = None,
    ) -> None:
        place = self._place
        entry = place.entry if place else None
        self.fate = Cancelled(
            given=self._given,
            fate=fate,
            job_id=entry.job_id if entry else self._given,
            state=entry.state if entry else None,
            attempt=entry.attempt if entry else 0,
            host=host or (entry.host if entry else None),
            silent_ms=_silent_ms(place) if place else None,
            outcome=outcome,
            reason=reason,
        )


def _silent_ms(place: Place) -> int | None:
    facts = QueueFacts(queue=place.entry.queue, now_ms=place.now_ms, beats=place.beats)
    return facts.silence_ms(place.boot)
