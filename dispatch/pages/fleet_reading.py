"""Reading one host for its page: the fleet around it, the jobs it has, the containers it began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dispatch.console import fleet
from dispatch.console.fleet_facts import FleetFacts, HostLook
from dispatch.queue.apart import apart
from dispatch.queue.containers import Begun, begun_everywhere
from dispatch.queue.entries import Entry
from dispatch.queue.listing import read_running
from hosts import switches
from hosts.names import SHARED_QUEUE, host_queue
from hosts.rows import Presence
from hosts.switches import PauseFlag

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """One host of a fleet; `name` is a valid one. `look` is None where nobody knows such a host.

    `entries` are the jobs that it has in hand or runs, `begun` its containers. `drain`: what drains it, with
    texts as they were written. `unreadable`: what could not be read, each with a token.
    """

    name: str
    fleet: FleetFacts
    look: HostLook | None
    entries: tuple[Entry, ...] = ()
    begun: tuple[Begun, ...] = ()
    drain: PauseFlag | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def queue(self) -> str:
        """Its own queue's name, whether or not there is one."""
        return host_queue(self.name)

    @property
    def is_known(self) -> bool:
        """Whether anything says that there is, or was, such a host."""
        return bool(self.look or self.drain or self.queue in self.fleet.queues)

    @property
    def is_taking(self) -> bool:
        """Whether it lives and takes jobs from its queue."""
        look = self.look
        return look is not None and look.presence is Presence.ALIVE and not look.draining


def read_host(client: redis.Redis, name: str) -> HostFacts:
    """Read all of it in a handful of steps; raises what redis-py raises when the server is away."""
    facts = fleet.read(client)
    look = next((host for host in facts.hosts if host.name == name), None)
    unreadable: dict[str, str] = {}
    entries: list[Entry] = []
    for queue in (SHARED_QUEUE, host_queue(name)):
        with apart(queue, unreadable):
            entries += [entry for entry in read_running(client, queue) if entry.host == name]
    containers: list[Begun] = []
    if look and look.host_id:
        for found in begun_everywhere(client, [look.host_id]).values():
            if isinstance(found, str):
                unreadable["the list of its containers"] = found
            else:
                containers += found
    drain: PauseFlag | None = None
    with apart("the switch that drains it", unreadable):
        drain = switches.read(client, (), host=name).drain
    return HostFacts(
        name=name,
        fleet=facts,
        look=look,
        entries=tuple(entries),
        begun=tuple(containers),
        drain=drain,
        unreadable=unreadable,
    )
