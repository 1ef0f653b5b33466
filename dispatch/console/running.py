"""What runs now, container by container, in three round trips: what a `stop` would end, before anybody asks.

It reads the lists of every host that the registry knows, and the jobs that run though no list names their
container. `stop` itself looks through all keys besides, so that it may find more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.unlisted import container_of, host_id_of
from dispatch.queue import keys
from dispatch.queue.containers import Begun, begun_everywhere
from dispatch.queue.started import Started, started
from hosts import names
from hosts.rows import HostRow, KnownHost

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningOne:
    """One container. `host` is None where nobody knows whose `host_id` it is.

    `container.name` is blank for a job that runs though no list names its container. `silent_ms`: for how
    long its host has not beaten, None where that is not known.
    """

    host: str | None
    host_id: str
    container: Begun
    silent_ms: int | None = None

    @property
    def place(self) -> str:
        """Where it is, as far as anybody knows."""
        return self.host or self.host_id or "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """All that runs, sorted by host; `unread` are keys that could not be read, each with a token."""

    ones: tuple[RunningOne, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Where something runs."""
        return tuple(dict.fromkeys(one.place for one in self.ones))

    def of(self, host: str | None) -> Running:
        """Keep what runs on this host, or where nobody can tell; None keeps all."""
        ones = tuple(one for one in self.ones if host is None or one.host in (None, host))
        return Running(ones=ones, unread=self.unread)


def read(client: redis.Redis, facts: FleetFacts) -> Running:
    """Read what runs in the fleet that `facts` is a look at. Raises redis-py's errors."""
    fleet = _Hosts(facts)
    listed = begun_everywhere(client, fleet.ids)
    unread = {keys.containers(one): found for one, found in listed.items() if isinstance(found, str)}
    ones = [fleet.one(host_id, container) for host_id, container in _entries(listed)]
    tokens = {one.container.token for one in ones if one.container.token}
    for queue, jobs in started(client, list(facts.queues)).items():
        if isinstance(jobs, str):
            unread[keys.queue_keys(queue).started] = jobs
        else:
            ones += [fleet.unlisted(job) for job in jobs if job.token not in tokens]
    ones.sort(key=lambda one: (one.place, one.container.name, one.container.job_id))
    return Running(ones=tuple(ones), unread=unread)


def _entries(listed: Mapping[str, list[Begun] | str]) -> Iterator[tuple[str, Begun]]:
    for host_id, found in listed.items():
        if not isinstance(found, str):
            yield from ((host_id, container) for container in found)


class _Hosts:
    """Whose host-ids are which; the worker that beat last speaks for one."""

    def __init__(self, facts: FleetFacts) -> None:
        self._now_ms = facts.now_ms
        self._last: dict[str, tuple[int, str]] = {}
        beats: tuple[KnownHost | HostRow, ...] = (*facts.known.known, *facts.known.hosts)
        for one in beats:
            if one.host_id and one.beat_at_ms is not None:
                beat = (one.beat_at_ms, one.name)
                self._last[one.host_id] = max(beat, self._last.get(one.host_id, beat))

    @property
    def ids(self) -> list[str]:
        return sorted(self._last)

    def one(self, host_id: str, container: Begun, *, said: str = "") -> RunningOne:
        beat, name = self._last.get(host_id, (None, said if names.in_alphabet(said) else None))
        silent_ms = None if beat is None else max(0, self._now_ms - beat)
        return RunningOne(host=name, host_id=host_id, container=container, silent_ms=silent_ms)

    def unlisted(self, job: Started) -> RunningOne:
        return self.one(host_id_of(job), container_of(job), said=job.host)
