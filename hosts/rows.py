"""What the registry says of the hosts, as values (Q 7.1, contracts 8). Instants are ms of Valkey's clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

# Three beats: evidence of life. Six: nobody is there.
LATE_MS = 45_000
GONE_MS = 90_000
# From here on a host's wrong clock is told.
SKEW_TOLD_MS = 5_000


class Presence(StrEnum):
    """How long ago a host last beat: within three beats, within six, or longer."""

    ALIVE = "alive"
    LATE = "late"
    GONE = "gone"


def presence_of(stale_ms: int | None) -> Presence:
    """Judge the age of a beat; a row without one is no sign of life."""
    if stale_ms is None or stale_ms > GONE_MS:
        return Presence.GONE
    return Presence.ALIVE if stale_ms <= LATE_MS else Presence.LATE


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """One host by its own words; a field that is missing is None, or blank for a text.

    `stale_ms` is the age of its beat, `clock_at_ms` its own clock at that beat. `routes`: it drains a queue
    of its own. `caps` are capability tokens. `blind` names what it cannot see (blank: nothing). `fp_…` are
    digests of what it has loaded of each operator file, `fp_spending` of the caps of its configuration.
    """

    name: str
    host_id: str | None = None
    boot: str | None = None
    beat_at_ms: int | None = None
    stale_ms: int | None = None
    started_at_ms: int | None = None
    clock_at_ms: int | None = None
    version: str = ""
    pid: int | None = None
    image: str = ""
    image_digest: str = ""
    pi_version: str = ""
    concurrency: int | None = None
    slots_used: int | None = None
    routes: bool = False
    caps: frozenset[str] = frozenset()
    tz: str = ""
    draining: bool = False
    blind: str = ""
    fp_cron: str = ""
    cron_count: int | None = None
    fp_pause: str = ""
    fp_limits: str = ""
    fp_settings: str = ""
    fp_spending: str = ""
    fp_triggers: str = ""

    @property
    def presence(self) -> Presence:
        """Whether it lives, by the age of its beat."""
        return presence_of(self.stale_ms)

    @property
    def skew_ms(self) -> int | None:
        """How far its clock is ahead of Valkey's (behind: negative); None when it does not say."""
        if self.clock_at_ms is None or self.beat_at_ms is None:
            return None
        return self.clock_at_ms - self.beat_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRow:
    """Something in the registry that is no row of ours; both texts are short and printable."""

    shown: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """A host that has beaten once, by the list that outlives the rows.

    `other_boot` is another boot that lives under its host-id, as its last beat had it; blank: none.
    """

    host_id: str
    name: str
    beat_at_ms: int
    other_boot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The fleet at `now_ms`: rows sorted by name, what could not be read, every host known from before."""

    now_ms: int
    hosts: tuple[HostRow, ...] = ()
    unreadable: tuple[UnreadableRow, ...] = ()
    known: tuple[KnownHost, ...] = field(default=())

    @property
    def live(self) -> tuple[HostRow, ...]:
        """The hosts with a fresh beat."""
        return tuple(row for row in self.hosts if row.presence is Presence.ALIVE)

    @property
    def gone(self) -> tuple[KnownHost, ...]:
        """Known hosts without a beat of the last 90 s, each name that nobody bears now once, newest first."""
        here = {row.name for row in self.hosts if row.presence is not Presence.GONE}
        newest: dict[str, KnownHost] = {}
        for host in sorted(self.known, key=lambda one: one.beat_at_ms):
            if host.name not in here and self.now_ms - host.beat_at_ms > GONE_MS:
                newest[host.name] = host
        return tuple(sorted(newest.values(), key=lambda one: -one.beat_at_ms))


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The registry could not be read, which is not the same as an empty one; `reason` is a token."""

    reason: str
