"""What Valkey shows of the containers that have begun, looked at again and again: the evidence for `stop`.

To be read after the switch is on: nothing begins any more, so that every container stands in a list by now.
An entry that leaves its list is proof only as long as nothing hides it: each such obstacle is a gap. That a
list itself was lost is seen by the jobs that run all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.console.stopped import SCAN, SHARED, SWITCH, Fate, Why
from dispatch.console.unlisted import Unlisted, container_of, host_id_of
from dispatch.queue import containers, keys
from dispatch.queue.containers import Begun, ListingHosts
from hosts import names, roster, switches
from hosts.rows import LATE_MS, HostRow, KnownHost, Presence, Unreachable
from hosts.stops import Answer, Confirmed

if TYPE_CHECKING:
    import redis

# A container by its host-id and name.
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _One:
    """A container, the workers that may have it, and whether its end is still to be told."""

    host_id: str
    container: Begun
    hosts: list[str]
    is_standing: bool


class Evidence:
    """The containers of the fleet, or of the host `only`.

    `over` counts those left out because they ended themselves long ago.
    """

    def __init__(self, client: redis.Redis, *, only: str | None) -> None:
        self._client = client
        self._only = only
        self._listing = ListingHosts(client)
        self._unlisted = Unlisted(client)
        self._gaps: dict[str, str] = {}
        self.over = 0
        # The last instant of Valkey's at which the registry was read: ages do not grow while it cannot be.
        self._now_ms = 0
        # By host-id: the names that its workers have given themselves, each with its last beat (ms).
        self._beats: dict[str, dict[str, int]] = {}
        # Every container that counts, and those whose end nobody has told yet.
        self._seen: dict[_Key, Begun] = {}
        self._standing: frozenset[_Key] = frozenset()
        # By token: the name of the worker that has the job.
        self._workers: dict[str, str] = {}

    @property
    def gaps(self) -> Mapping[str, str]:
        """What may hide a container, each with a token."""
        return {**self._gaps, **self._unlisted.gaps}

    def read(self, queues: Sequence[str]) -> None:
        """Look once, for jobs in these queues. Raises VALKEY_FAULTS; what was known before stays."""
        is_aged = self._read_hosts()
        self._listing.seek()
        self._note(SCAN, None if self._listing.is_whole else "too-many-keys")
        host_ids = sorted(self._listing.found.union(self._beats))
        found = containers.begun_everywhere(self._client, host_ids)
        readable = (each for each in found.values() if not isinstance(each, str))
        self._unlisted.read(queues, [one.token for each in readable for one in each])
        # Later than the lists: what they show was still under the switch.
        now_ms = self._read_switch()
        if is_aged:
            self._now_ms = now_ms
        entries: dict[_Key, Begun] = {}
        for host_id, listed in found.items():
            is_gap = isinstance(listed, str) and self._concerns(host_id)
            self._note(keys.containers(host_id), str(listed) if is_gap else None)
            if not isinstance(listed, str):
                entries.update({(host_id, one.name): one for one in listed})
        self._take(entries, unread={host_id for host_id, one in found.items() if isinstance(one, str)})

    def _read_hosts(self) -> bool:
        """Take over what the registry says now; what it said before stays true while it is unreadable."""
        answer = roster.read(self._client)
        if isinstance(answer, Unreachable):
            return False
        rows: tuple[KnownHost | HostRow, ...] = (*answer.known, *answer.hosts)
        for one in rows:
            if one.host_id and one.beat_at_ms is not None:
                beats = self._beats.setdefault(one.host_id, {})
                beats[one.name] = max(one.beat_at_ms, beats.get(one.name, 0))
        here: dict[str, list[str]] = {}
        for row in answer.hosts:
            if row.host_id and row.presence is not Presence.GONE and self._concerns(row.host_id):
                here.setdefault(row.host_id, []).append(row.name)
        shared = sorted("+".join(sorted(each)) for each in here.values() if len(each) > 1)
        self._note(SHARED, ", ".join(shared) or None)
        return True

    def _read_switch(self) -> int:
        """Read Valkey's clock, and note if what was turned on does not hold any more.

        More may have begun then; or the server has lost what was written, and with it lists of containers.
        """
        read = switches.read(self._client, (), host=self._only)
        if (read.fleet if self._only is None else read.drain) is None:
            # For good: who turns it on again has not seen what happened in between.
            self._note(SWITCH, "ended")
        return read.now_ms

    def _take(self, entries: Mapping[_Key, Begun], *, unread: set[str]) -> None:
        new = [one for key, one in entries.items() if key not in self._seen]
        self._workers.update(containers.worker_names(self._client, new))
        every = {**self._seen, **entries}
        self._seen = {key: one for key, one in every.items() if not self._is_over(key[0], one)}
        self.over = sum(self._concerns(host_id) for host_id, _ in entries.keys() - self._seen.keys())
        is_lost, running = SWITCH in self._gaps, self._unlisted.running
        kept = {
            key
            for key in self._standing
            if is_lost or key[0] in unread or (key in self._seen and self._seen[key].token in running)
        }
        self._standing = frozenset(kept.union(entries))

    def _note(self, gap: str, token: str | None) -> None:
        if token is None:
            self._gaps.pop(gap, None)
        else:
            self._gaps[gap] = token

    def _is_over(self, host_id: str, one: Begun) -> bool:
        """Tell whether it has ended itself long ago: its host has been silent for longer than any may take.

        The deadline is by the host's clock, which may be wrong, so that it proves nothing by itself.
        """
        silent_ms = self._silent_ms(host_id)
        is_vanished = silent_ms is not None and silent_ms > containers.VANISHED_MS
        return is_vanished and bool(containers.outlived([one], now_ms=self._now_ms))

    def _silent_ms(self, host_id: str) -> int | None:
        beats = self._beats.get(host_id)
        return max(0, self._now_ms - max(beats.values())) if beats else None

    def _concerns(self, host_id: str) -> bool:
        """Tell whether a host of this id may be the one that is asked."""
        return self._only is None or self._only in self._beats.get(host_id, (self._only,))

    def _hosts_of(self, host_id: str, job_says: str) -> list[str]:
        """Name the workers that may have it: by the registry, the last to beat first, then the job's."""
        beats = self._beats.get(host_id, {})
        said = [*sorted(beats, key=lambda name: -beats[name]), job_says]
        return [name for name in dict.fromkeys(said) if names.in_alphabet(name)]

    def hosts(self) -> set[str]:
        """Name every worker that may have one of the containers."""
        return {host for one in self._all() for host in one.hosts}

    def _all(self) -> Iterator[_One]:
        for (host_id, name), container in sorted(self._seen.items()):
            hosts = self._hosts_of(host_id, self._workers.get(container.token, ""))
            yield _One(host_id, container, hosts, is_standing=(host_id, name) in self._standing)
        for job, is_ended in self._unlisted.jobs():
            host_id = host_id_of(job)
            hosts = self._hosts_of(host_id, job.host)
            yield _One(host_id, container_of(job), hosts, is_standing=not is_ended)

    def names(self) -> set[str]:
        """Name every worker that was heard of."""
        return self.hosts().union(*self._beats.values())

    def fates(self, request_id: str, answers: Mapping[str, Answer]) -> Iterator[Fate]:
        """Judge each container, by these answers of workers to the request of this id; sorted.

        Whose worker nobody can name may be of any host.
        """
        for one in self._all():
            hosts, silent_ms = one.hosts, self._silent_ms(one.host_id)
            if self._only is not None and hosts and self._only not in hosts:
                continue
            host = self._only if self._only in hosts else next(iter(hosts), None)
            answer = answers.get(host) if host else None
            told = answer.containers if answer and answer.request_id == request_id else ()
            yield Fate(
                host=host,
                host_id=one.host_id,
                container=one.container,
                state=Confirmed.UNCONFIRMED if one.is_standing else Confirmed.GONE,
                why=_why(host, one.container, silent_ms, told) if one.is_standing else None,
                silent_ms=silent_ms,
            )


def _why(host: str | None, container: Begun, silent_ms: int | None, told: Iterable[str]) -> Why:
    if host is None:
        return Why.HOST_UNKNOWN
    if silent_ms is not None and silent_ms > LATE_MS:
        return Why.HOST_SILENT
    return Why.STOPPING if container.name in told else Why.UNANSWERED
