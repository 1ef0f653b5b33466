"""What holds for queues besides their jobs: the pauses, and which of their workers are drained or gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.console.obstacles import Drain, QueueFacts
from hosts import roster, switches
from hosts.names import host_of_queue
from hosts.rows import Roster, Unreachable
from hosts.switches import PauseFlag, Switches

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What was read for some queues at `held.now_ms`; `facts` gives what of it holds for one of them.

    `drained`: boot to drain, and `blind`: boot to name of a worker that does not see its engine, by the
    registry. `drains` and `last_beats` (ms): by the worker's name.
    """

    roster: Roster | Unreachable
    held: Switches
    drained: Mapping[str, Drain]
    blind: Mapping[str, str]
    drains: Mapping[str, PauseFlag]
    last_beats: Mapping[str, int]

    def facts(self, queue: str, *, now_ms: int, beats: Mapping[str, int]) -> QueueFacts:
        """Give what holds for this queue; `beats` are of its workers, boot to last beat (ms)."""
        host = host_of_queue(queue)
        drained = {boot: self.drained[boot] for boot in beats if boot in self.drained}
        if host and host in self.drains:
            # Only this host takes from it, whether or not the registry has its row.
            drained = dict.fromkeys(beats, Drain(host, self.drains[host]))
        return QueueFacts(
            queue=queue,
            now_ms=now_ms,
            fleet=self.held.fleet,
            own=self.held.queues[queue],
            beats=beats,
            drained=drained,
            blind={boot: self.blind[boot] for boot in beats if boot in self.blind},
            last_beat_ms=self.last_beats.get(host or ""),
        )


def read(client: redis.Redis, queues: Sequence[str]) -> Circumstances:
    """Read them in three steps at most, however many queues and hosts there are.

    While the registry cannot be read, a drained worker of the shared queue looks like one that takes jobs.
    """
    answer = roster.read(client)
    fleet = answer if isinstance(answer, Roster) else Roster(now_ms=0)
    held = switches.read(client, queues)
    draining = {row.boot: row.name for row in fleet.hosts if row.draining and row.boot}
    own = {host for queue in queues if (host := host_of_queue(queue))}
    drains = switches.drains(client, sorted(own.union(draining.values())))
    last_beats: dict[str, int] = {}
    for known in fleet.known:
        last_beats[known.name] = max(known.beat_at_ms, last_beats.get(known.name, 0))
    return Circumstances(
        roster=answer,
        held=held,
        drained={boot: Drain(name, drains.get(name)) for boot, name in draining.items()},
        blind={row.boot: row.name for row in fleet.hosts if row.boot and "engine" in row.blind.split(",")},
        drains=drains,
        last_beats=last_beats,
    )
