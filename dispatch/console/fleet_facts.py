"""What one look at the fleet finds, as values: hosts, queues and switches, in ms of Valkey's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hosts.names import SHARED_QUEUE, host_queue
from hosts.rows import LATE_MS, HostRow, KnownHost, Presence, Roster, Unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause that holds: who, why, from when to when (None: until resumed)."""

    by: str = ""
    reason: str = ""
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked:
    """A request to one host to stop what it runs, that nobody has taken back.

    `came_with_drain`: the end of the host's drain takes it back, and the end of the fleet's pause does not.
    """

    host: str
    by: str = ""
    reason: str = ""
    at_ms: int | None = None
    came_with_drain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLook:
    """One queue: how many jobs stand where (None: the key is none of ours), and its own pause.

    `waiting` are in line, paused or not, `active` in hand or started, `held` asleep until a condition is met,
    `deferred` asleep for another reason: `put_off` counts those that no busy folder or repository keeps, by
    reason (none: that could not be read). `taker_beat_ms` is the last beat of any worker that takes from it.
    """

    name: str
    waiting: int | None = 0
    active: int | None = 0
    deferred: int | None = 0
    held: int | None = 0
    put_off: Mapping[str, int] = field(default_factory=dict)
    taker_beat_ms: int | None = None
    pause: Pause | None = None

    @property
    def host(self) -> str | None:
        """Whose it is; None for the shared queue."""
        return self.name.removeprefix(SHARED_QUEUE)[1:] or None

    @property
    def jobs(self) -> int:
        """How many jobs still need a worker of this queue, those that run aside."""
        return (self.waiting or 0) + (self.deferred or 0) + (self.held or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    """One host, there (`row`) or known from before, with its own queue where there is one.

    `draining`: it is drained, there or not.
    """

    name: str
    row: HostRow | None = None
    host_id: str | None = None
    stale_ms: int | None = None
    queue: QueueLook | None = None
    draining: bool = False

    @property
    def presence(self) -> Presence:
        """Whether it lives, by the age of its beat; without a row it is gone."""
        return self.row.presence if self.row else Presence.GONE


# No slots: what is derived from the rows is kept, since many rules ask for it.
@dataclass(frozen=True, kw_only=True)
class FleetFacts:
    """The fleet at `now_ms`. `queues` by name, the shared one first; `pause` is the whole fleet's.

    `pending` are the records that a host has yet to write, by its host-id, only where there are some.
    `drained` are the names of known hosts, there or gone, whose drain holds.
    """

    now_ms: int
    roster: Roster | Unreachable
    queues: Mapping[str, QueueLook] = field(default_factory=dict)
    pause: Pause | None = None
    stops: tuple[StopAsked, ...] = ()
    pending: Mapping[str, int] = field(default_factory=dict)
    drained: frozenset[str] = frozenset()

    @cached_property
    def known(self) -> Roster:
        """What is known of hosts; nothing where the registry could not be read."""
        return self.roster if isinstance(self.roster, Roster) else Roster(now_ms=self.now_ms)

    @cached_property
    def rows(self) -> tuple[HostRow, ...]:
        """The rows with a beat of the last 90 s."""
        return tuple(row for row in self.known.hosts if row.presence is not Presence.GONE)

    @cached_property
    def gone(self) -> Mapping[str, KnownHost]:
        """The hosts that were there once and are not now, by name."""
        return {host.name: host for host in self.known.gone}

    @cached_property
    def hosts(self) -> tuple[HostLook, ...]:
        """Every host, there or gone, by name."""
        rows = {row.name: row for row in self.known.hosts}
        return tuple(self._host(name, rows.get(name)) for name in sorted({*rows, *self.gone}))

    @cached_property
    def asked_to_stop(self) -> frozenset[str]:
        """The hosts for which a request to stop stands."""
        return frozenset(stop.host for stop in self.stops)

    def _host(self, name: str, row: HostRow | None) -> HostLook:
        queue = self.queues.get(host_queue(name))
        if row:
            return HostLook(
                name=name,
                row=row,
                host_id=row.host_id,
                stale_ms=row.stale_ms,
                queue=queue,
                draining=row.draining,
            )
        gone = self.gone[name]
        return HostLook(
            name=name,
            host_id=gone.host_id,
            stale_ms=self.silence_ms(gone),
            queue=queue,
            draining=name in self.drained,
        )

    @property
    def slots(self) -> tuple[int, int]:
        """How many slots are used, and how many there are, as far as the hosts that are there say it."""
        used = sum(row.slots_used or 0 for row in self.rows)
        return used, sum(row.concurrency or 0 for row in self.rows)

    def silence_ms(self, host: KnownHost) -> int:
        """Tell how long ago it last beat."""
        return max(0, self.known.now_ms - host.beat_at_ms)

    def is_taken_from(self, queue: QueueLook) -> bool:
        """Whether a worker that takes from the queue lives: by its beats there, not by the registry."""
        beat = queue.taker_beat_ms
        return beat is not None and self.now_ms - beat <= LATE_MS
