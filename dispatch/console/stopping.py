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

from dispatch.console.queues import read_queues
from dispatch.console.stopped import SCAN, VALKEY, Fate, Stopped, Why
from dispatch.queue import containers
from dispatch.queue.containers import Begun
from hosts import names, roster, stops
from hosts.faults import token_of
from hosts.rows import LATE_MS, HostRow, KnownHost, Unreachable
from hosts.stops import Answer, Confirmed, StopRequest
from pidispatch_site.clients import VALKEY_FAULTS

if TYPE_CHECKING:
    import redis

_FAULT_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds: for all containers to go, between two looks, between two words about them."""

    whole: float = 30
    look: float = 0.25
    word: float = 5


def stop(
    client: redis.Redis,
    *,
    only: str | None = None,
    by: str,
    reason: str,
    tell: Callable[[Stopped], object],
    patience: Patience | None = None,
) -> Stopped:
    """Ask, and watch until every container is gone or the time is over; `tell` hears how it stands.

    A fault of Valkey is met with patience. One that lasts is raised if nobody could be asked.
    """
    patience = patience or Patience()
    ends = time.monotonic() + patience.whole
    effort = _Effort(client, only=only, by=by, reason=reason)
    _insist(effort.ask, ends)
    told, told_at = None, 0.0
    while True:
        found = effort.look()
        state = (found.asked, len(found.fates), len(found.unconfirmed), found.is_blind)
        if state != told or time.monotonic() - told_at >= patience.word:
            tell(found)
            told, told_at = state, time.monotonic()
        if found.is_proven or time.monotonic() >= ends:
            return found
        time.sleep(max(0.0, min(patience.look, ends - time.monotonic())))


def _insist(step: Callable[[], None], ends: float) -> None:
    while True:
        try:
            step()
        except VALKEY_FAULTS:
            if time.monotonic() + _FAULT_PAUSE_SECONDS >= ends:
                raise
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
        self._gaps: dict[str, str] = {}
        self._now_ms = 0
        # By host-id: the worker's name, its last beat (ms).
        self._names: dict[str, str] = {}
        self._beats: dict[str, int] = {}
        self._host_ids: frozenset[str] = frozenset()
        # By host-id and name: every container that was seen, and those that are still listed.
        self._seen: dict[tuple[str, str], Begun] = {}
        self._listed: frozenset[tuple[str, str]] = frozenset()
        # By token, for hosts that the registry does not know.
        self._workers: dict[str, str] = {}
        self._answers: Mapping[str, Answer] = {}

    def ask(self) -> None:
        """Turn the switch on and ask every host that anything knows of; may be repeated."""
        known = read_queues(self._client)
        self._gaps = dict(known.unread)
        self._is_known = self._only is None or self._only in known.hosts
        self._ask(known.hosts if self._only is None else (self._only,))
        # Nothing begins any more: whoever has begun something has a list by now.
        self._host_ids, is_whole = containers.listing_hosts(self._client)
        if not is_whole:
            self._gaps[SCAN] = "too-many-keys"

    def _ask(self, hosts: Iterable[str]) -> None:
        asked = self._asked.union(hosts)
        self._request = stops.ask(
            self._client,
            asked,
            by=self._by,
            reason=self._reason,
            request_id=self._request.request_id,
            only=self._only,
        )
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
            is_known=self._is_known,
            request=self._request,
            asked=tuple(sorted(self._asked)),
            fates=tuple(self._fates()),
            gaps=dict(self._gaps),
            seconds=time.monotonic() - self._began,
        )

    def _read(self) -> None:
        self._read_hosts()
        host_ids = sorted(self._host_ids.union(self._names))
        found = containers.begun_everywhere(self._client, host_ids)
        listed = {(host_id, one.name): one for host_id, entries in found.items() for one in entries}
        new = {key: one for key, one in listed.items() if key not in self._seen and not self._is_over(one)}
        self._workers.update(containers.worker_names(self._client, new.values()))
        self._seen.update(new)
        self._listed = frozenset(listed)
        newcomers = {host for key in self._seen if (host := self._host_of(key))} - self._asked
        if newcomers and self._only is None:
            self._ask(newcomers)
        self._answers = stops.answers(self._client, sorted(self._asked))

    def _read_hosts(self) -> None:
        """Take over what the registry says now; what it said before stays true while it is unreadable."""
        seconds, micros = self._client.time()
        self._now_ms = seconds * 1000 + micros // 1000
        answer = roster.read(self._client)
        if isinstance(answer, Unreachable):
            return
        rows: tuple[KnownHost | HostRow, ...] = (*answer.known, *answer.hosts)
        for one in rows:
            if one.host_id and one.beat_at_ms is not None:
                self._names[one.host_id] = one.name
                self._beats[one.host_id] = max(one.beat_at_ms, self._beats.get(one.host_id, 0))

    def _is_over(self, one: Begun) -> bool:
        """Tell whether it has ended itself long ago, whatever became of its host."""
        return bool(containers.outlived([one], now_ms=self._now_ms))

    def _host_of(self, key: tuple[str, str]) -> str | None:
        """Name the worker that has it: the registry's word for the host-id, else the job's."""
        name = self._names.get(key[0]) or self._workers.get(self._seen[key].token)
        return name if names.in_alphabet(name) else None

    def _fates(self) -> Iterable[Fate]:
        for key, container in sorted(self._seen.items()):
            host, silent_ms = self._host_of(key), self._silent_ms(key[0])
            if self._only not in (None, host):
                continue
            is_listed = key in self._listed
            yield Fate(
                host=host,
                host_id=key[0],
                container=container,
                state=Confirmed.UNCONFIRMED if is_listed else Confirmed.GONE,
                why=self._why(host, container, silent_ms) if is_listed else None,
                silent_ms=silent_ms,
            )

    def _why(self, host: str | None, container: Begun, silent_ms: int | None) -> Why:
        if host is None:
            return Why.HOST_UNKNOWN
        if silent_ms is not None and silent_ms > LATE_MS:
            return Why.HOST_SILENT
        answer = self._answers.get(host)
        if answer is None or answer.request_id != self._request.request_id:
            return Why.UNANSWERED
        return Why.STOPPING if container.name in answer.containers else Why.UNANSWERED

    def _silent_ms(self, host_id: str) -> int | None:
        beat = self._beats.get(host_id)
        return None if beat is None else max(0, self._now_ms - beat)
