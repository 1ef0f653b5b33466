"""Stopping all that runs, in the fleet or on one host, and proving it: what `stop` does and what it found.

The switch goes on and every host is asked in one step; then the lists of containers are watched. A container
is gone when it has left its host's list, which only that host's engine can bring about.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redis.exceptions import AuthenticationError, AuthorizationError, BusyLoadingError, ResponseError

from dispatch.console.queues import read_queues
from dispatch.console.stop_evidence import Evidence
from dispatch.console.stopped import VALKEY, Stopped
from hosts import names, stops
from hosts.faults import token_of
from hosts.stops import Answer, StopRequest
from pidispatch_site.clients import VALKEY_FAULTS

if TYPE_CHECKING:
    import redis

_FAULT_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds: for all containers to go, for Valkey to take the request, between two looks, two words."""

    whole: float = 30
    first: float = 5
    look: float = 0.25
    word: float = 5


def stop(
    client: redis.Redis,
    *,
    only: str | None = None,
    by: str,
    reason: str,
    tell: Callable[[Stopped], object],
    retrying: Callable[[str, bool], object] = lambda token, may_be_asked: None,
    patience: Patience | None = None,
) -> Stopped:
    """Ask, and watch until every container is gone or the time is over; `tell` hears how it stands.

    A fault of Valkey is met with patience, little while nothing can have been asked: `retrying` hears its
    token and whether the request may stand. One that lasts is raised if nobody is known to be asked.
    """
    patience = patience or Patience()
    began = time.monotonic()
    ends = began + patience.whole
    effort = _Effort(client, only=only, by=by, reason=reason)
    _insist(effort, began, patience, retrying)
    told, told_at = None, 0.0
    while True:
        found = effort.look()
        state = (found.asked, len(found.fates), len(found.unconfirmed), tuple(found.gaps))
        if state != told or time.monotonic() - told_at >= patience.word:
            tell(found)
            told, told_at = state, time.monotonic()
        if found.is_over or time.monotonic() >= ends:
            return found
        time.sleep(max(0.0, min(patience.look, ends - time.monotonic())))


def _insist(
    effort: _Effort, began: float, patience: Patience, retrying: Callable[[str, bool], object]
) -> None:
    said_at = -patience.word
    while True:
        try:
            effort.ask()
        except (AuthenticationError, AuthorizationError):
            raise
        except VALKEY_FAULTS as fault:
            seconds = patience.whole if effort.may_be_asked else min(patience.first, patience.whole)
            now = time.monotonic()
            if now + _FAULT_PAUSE_SECONDS >= began + seconds:
                raise
            if now - said_at >= patience.word:
                retrying(token_of(fault), effort.may_be_asked)
                said_at = now
            time.sleep(_FAULT_PAUSE_SECONDS)
        else:
            return


class _Effort:
    """One request to stop, and what is known of the containers that it is to end."""

    def __init__(self, client: redis.Redis, *, only: str | None, by: str, reason: str) -> None:
        self._client = client
        self._only = only
        self._by = by
        self._reason = reason
        self._request = StopRequest(secrets.token_hex(8), 0)
        self._began = time.monotonic()
        self._asked: frozenset[str] = frozenset()
        self._is_known = True
        self._queues: tuple[str, ...] = ()
        self._gaps: dict[str, str] = {}
        self._evidence = Evidence(client, only=only)
        self._answers: Mapping[str, Answer] = {}
        self.may_be_asked = False

    def ask(self) -> None:
        """Turn the switch on and ask every host that anything knows of; may be repeated."""
        # Who is not there costs one wait, and nothing has been sent that could take effect later.
        self._client.time()
        known = read_queues(self._client)
        self._gaps = dict(known.unread)
        self._is_known = self._only is None or self._only in known.hosts
        self._queues = known.names
        self._ask(known.hosts if self._only is None else (self._only,))

    def _ask(self, hosts: Iterable[str]) -> None:
        asked = self._asked.union(hosts)
        try:
            self._request = stops.ask(
                self._client,
                asked,
                by=self._by,
                reason=self._reason,
                request_id=self._request.request_id,
                only=self._only,
            )
        except (ResponseError, BusyLoadingError):
            # A refusal: nothing was written.
            raise
        except VALKEY_FAULTS:
            self.may_be_asked = True
            raise
        self._asked = asked

    def look(self) -> Stopped:
        """Read the lists once; through a fault of Valkey with what was known before."""
        try:
            self._read()
            self._gaps.pop(VALKEY, None)
        except VALKEY_FAULTS as fault:
            self._gaps[VALKEY] = token_of(fault)
        return Stopped(
            only=self._only,
            is_known=self._is_known or self._only in self._evidence.names(),
            request=self._request,
            asked=tuple(sorted(self._asked)),
            fates=tuple(self._evidence.fates(self._request.request_id, self._answers)),
            over=self._evidence.over,
            gaps={**self._gaps, **self._evidence.gaps},
            seconds=time.monotonic() - self._began,
        )

    def _read(self) -> None:
        self._evidence.read(names.union(self._queues, map(names.host_queue, self._asked)))
        newcomers = self._evidence.hosts() - self._asked
        if newcomers and self._only is None:
            self._ask(newcomers)
        self._answers = stops.answers(self._client, sorted(self._asked))
