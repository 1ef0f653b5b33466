"""What people ask of this worker while it works: to stop all that it runs, or to cancel one of its jobs.

Looked at twice a second while something runs. An order is obeyed before it is answered, and answered again
and again until Valkey has taken the answer: an order may be obeyed twice and is never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dispatch.queue import keys
from dispatch.queue.dropping import drop
from dispatch.worker.live import LiveAttempt, LiveAttempts
from hosts import stops
from hosts.stops import Asked, Confirmed, StopRequest
from pidispatch_site import log
from runs.abort import AbortReason

if TYPE_CHECKING:
    import redis


def _nobody() -> None:
    """Ring nowhere."""


@dataclass(slots=True)
class _StopAnswer:
    """What is known of the containers that one request to stop concerns, and whether it was told."""

    request: StopRequest | None = None
    containers: Mapping[str, Confirmed] = field(default_factory=dict)
    is_told: bool = True

    @property
    def is_owed(self) -> bool:
        return not self.is_told or Confirmed.UNCONFIRMED in self.containers.values()

    def learn(self, listed: frozenset[str], spared: frozenset[str]) -> None:
        """Take over what the host's list says: what was in it once and is not any more, is gone."""
        known = dict.fromkeys(self.containers, Confirmed.GONE)
        now = {**known, **dict.fromkeys(listed, Confirmed.UNCONFIRMED)}
        found = {name: state for name, state in now.items() if name not in spared}
        if found != self.containers:
            self.containers, self.is_told = found, False


class Orders:
    """The orders to one worker process; one thread calls `look`. Faults of Valkey are raised to it.

    `ask_engine` is rung when containers are to be gone that no attempt of this process has any more: only the
    reaper hears of their end.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        host: str,
        host_id: str,
        live: LiveAttempts,
        ask_engine: Callable[[], object] = _nobody,
    ) -> None:
        self._client = client
        self._host = host
        self._containers = keys.containers(host_id)
        self._live = live
        self._ask_engine = ask_engine
        self._stop = _StopAnswer()
        self._is_unreadable = False
        # Job to the id of the request to cancel it that is obeyed and whose answer Valkey has not taken yet.
        self._unanswered: dict[str, str] = {}
        # Token to job of the attempts that were asked to stop for good.
        self._cancelled: dict[str, str] = {}

    def look(self) -> None:
        """Obey what is asked, and answer. Sends nothing while nothing has begun and no answer is owed."""
        attempts = self._live.attempts()
        begun = tuple(one for one in attempts if one.has_begun)
        if not (begun or self._stop.is_owed or self._cancelled):
            return
        asked = stops.read(
            self._client,
            host=self._host,
            containers=self._containers,
            job_ids=tuple(dict.fromkeys(one.claimed.job_id for one in begun)),
        )
        self._obey_stop(asked, attempts)
        self._obey_cancels(asked, begun)
        self._answer_stop()
        self._answer_cancels()
        self._make_final({one.claimed.token for one in begun})

    def _obey_stop(self, asked: Asked, attempts: Iterable[LiveAttempt]) -> None:
        if asked.is_unreadable and not self._is_unreadable:
            log.event("operator_stop_unreadable")
        self._is_unreadable = asked.is_unreadable
        request = asked.stop
        if request is None:
            self._stop = _StopAnswer()
            return
        older = [one for one in attempts if one.has_begun and one.claimed.now_ms <= request.at_ms]
        for attempt in older:
            attempt.abort.set(AbortReason.OPERATOR_STOP)
        newer = frozenset(
            one.container for one in attempts if one.container and one.claimed.now_ms > request.at_ms
        )
        if request != self._stop.request:
            log.event("operator_stop", request=request.request_id, jobs=len(older))
            self._stop = _StopAnswer(request, is_told=False)
            if asked.listed - newer - {one.container for one in older}:
                self._ask_engine()
        self._stop.learn(asked.listed, newer)

    def _obey_cancels(self, asked: Asked, begun: Iterable[LiveAttempt]) -> None:
        for attempt in begun:
            job_id, token = attempt.claimed.job_id, attempt.claimed.token
            request_id = asked.cancels.get(job_id)
            if request_id is None:
                continue
            attempt.abort.set(AbortReason.OPERATOR_CANCEL)
            if token not in self._cancelled:
                log.event("operator_cancel", jobId=job_id)
            self._unanswered[job_id] = request_id
            self._cancelled[token] = job_id

    def _answer_stop(self) -> None:
        answer = self._stop
        if answer.request is None or answer.is_told:
            return
        stops.answer(
            self._client,
            host=self._host,
            request_id=answer.request.request_id,
            containers=answer.containers,
        )
        answer.is_told = True

    def _answer_cancels(self) -> None:
        for job_id, request_id in tuple(self._unanswered.items()):
            stops.answer_cancel(self._client, job_id, request_id=request_id, host=self._host)
            del self._unanswered[job_id]

    def _make_final(self, begun: set[str]) -> None:
        """End what would be tried again: a cancelled job whose attempt had failed a moment before."""
        for token, job_id in tuple(self._cancelled.items()):
            if token not in begun:
                drop(self._client, job_id)
                del self._cancelled[token]
