"""Keeps a host's table of schedules as its file says, while no host of the fleet disagrees (Q 10.4 to 10.6).

What is installed goes on whatever happens here: a file that cannot be taken, a peer with another one, a
server that is away. What did not work is tried again until it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import redis
from redis.exceptions import RedisError

from dispatch.instants import instant_of
from dispatch.operator_files.problems import OperatorFileError
from dispatch.schedules.agreement import Proceed, Refused, judge
from dispatch.schedules.links import Links
from dispatch.schedules.other_tables import OtherTables
from dispatch.schedules.placement import Placed, place
from dispatch.schedules.table import Resident, Table
from dispatch.schedules.telling import Teller
from hosts import roster
from hosts.faults import token_of
from hosts.rows import HostRow, Roster, Unreachable
from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.errors import ConfigurationError, OperationalError

if TYPE_CHECKING:
    from dispatch.operator_files.live import LiveFile
    from dispatch.queue.owner import Owner
    from dispatch.schedules.definition import Schedule
    from dispatch.schedules.opinion import Opinion
    from dispatch.triggers.entries import Triggers
    from hosts.registry import Registry

# Beside a copy of our state directory, or another machine of our name, its table is not ours alone.
CONTESTED = "host-contested"


@dataclass(slots=True, kw_only=True)
class Keeper:
    """The schedules of one host in the table of `queue`, where they belong; used by one thread at a time.

    `fleet_mode`: what this host has no folder for is left to others. `opinion` is what `registry` publishes
    of `file`. `clock_ms` tells the instant from which new schedules count. Seconds: what failed or was
    refused is tried again after `retry`; what stands is looked at anew after `review`; `clock` is monotonic.
    """

    client: redis.Redis
    registry: Registry
    file: LiveFile[Triggers]
    opinion: Opinion
    owner: Owner
    queue: str
    zone: str
    fleet_mode: bool
    clock_ms: Callable[[], int]
    retry: float = 5
    review: float = 30
    clock: Callable[[], float] = time.monotonic
    _table: Table = field(init=False)
    _others: OtherTables = field(init=False)
    _teller: Teller = field(default_factory=Teller)
    # What the table was brought in line with: the version of the file, and what came of it. None while that
    # is still to be done.
    _version: int = 0
    _kept: Placed | None = None
    _looked_at: Placed | None = None
    # The definitions of what is kept, by id, and the links among its folders.
    _texts: Mapping[str, str] = field(default_factory=dict)
    _links: Links = field(default_factory=Links)
    _due: float = 0

    def __post_init__(self) -> None:
        self._table = Table(self.client, self.queue)
        self._others = OtherTables(self.client, self.owner, self.queue)

    def at_boot(self) -> None:
        """Bring the table in line for the first time; what is in the way is said, and tried again later.

        Raises VALKEY_FAULTS, and ConfigurationError for schedules that cannot be installed.
        """
        self._bring_in_line(raising=(*VALKEY_FAULTS, ConfigurationError))

    def look(self) -> None:
        """Bring the table in line after an edit, and now and then when something else has changed."""
        is_edited = self.file.version != self._version
        is_due = self.clock() >= self._due or (self._kept is not None and self._links.have_moved())
        if not is_edited and not is_due:
            return
        if is_edited or self._kept is None or self._has_drifted(self._kept):
            self._bring_in_line()

    def _bring_in_line(self, *, raising: tuple[type[Exception], ...] = ()) -> None:
        # Before the value is read: what is taken over meanwhile is another edit.
        self._version, self._kept, self._texts = self.file.version, None, {}
        try:
            self._kept = self._carried_out()
        except OperatorFileError as error:
            self._teller.invalid(error)
        except raising:
            raise
        except (RedisError, ConfigurationError, OperationalError) as error:
            self._teller.failed(_token_of(error))
        self._looked_at = self._kept
        self._due = self.clock() + (self.review if self._kept else self.retry)

    def _carried_out(self) -> Placed | None:
        """Do so unless somebody is against it; answer with what it is in line, None when it is not."""
        placed = self._placed()
        self._teller.placed(placed)
        rows, judged = self._asked()
        if isinstance(judged, Refused):
            self._teller.refused(judged)
            return None
        if self.file.version != self._version:
            # They were asked about another version.
            return None
        self._others.claim()
        now = instant_of(self.clock_ms())
        done = self._table.reconcile(placed.served, now=now, former=self._others.before())
        # Afterwards: a schedule is rather for a moment in two tables than in none.
        moved = self._others.tidy(rows, [one.id for one in placed.served])
        self._links = Links.among(self.file.current, placed)
        self._teller.done(
            peers=judged.peers,
            installed=len(done.installed),
            removed=len(done.removed) + len(moved),
            unserved=len(placed.unserved),
            torn=len(done.torn),
        )
        return placed

    def _asked(self) -> tuple[tuple[HostRow, ...] | None, Proceed | Refused]:
        """Tell the fleet what we have, then ask it: of two that change at once one sees both."""
        self.registry.publish()
        rows = self._rows()
        mine, count = self.opinion.fingerprint(), self.opinion.count()
        if self.registry.is_contested:
            return rows, Refused(mine=mine, count=count, peers=(), reason=CONTESTED)
        # By a registry that cannot be read nobody is against it.
        return rows, judge(mine, count, rows or (), own_host_id=self.owner.host_id)

    def _rows(self) -> tuple[HostRow, ...] | None:
        """Read who is there; None when that cannot be read."""
        match roster.read(self.client):
            case Roster(hosts=hosts):
                return hosts
            case Unreachable(reason="timeout" | "no-connection" as reason):
                # The table is on the same server, and in a moment both will answer.
                raise redis.exceptions.ConnectionError(reason)
            case Unreachable():
                return None

    def _placed(self) -> Placed:
        return place(self.file.current, fleet_mode=self.fleet_mode, host_zone=self.zone, name="")

    def _has_drifted(self, kept: Placed) -> bool:
        """Whether folders came or went, by two looks in a row, or lie elsewhere, or the table is another."""
        self._due = self.clock() + self.review
        try:
            placed, is_as_it_was = self._placed(), self._is_in_line(kept) and not self._may_tidy()
        except OperatorFileError:
            # A single host keeps what it has: a job without its folder is refused, and that is seen.
            return False
        except VALKEY_FAULTS:
            return False
        except RedisError:
            return True
        before, self._looked_at = self._looked_at, placed
        # What is mounted anew is there, away and there again; a link shows one folder or the other.
        has_moved = placed != kept and (placed == before or _ids(placed) == _ids(kept))
        return has_moved or not is_as_it_was

    def _may_tidy(self) -> bool:
        """Whether tables that we had to leave are ours to tidy by now."""
        return self._others.are_left and self._others.are_free(self._rows())

    def _is_in_line(self, kept: Placed) -> bool:
        """Whether exactly these are installed, or were torn down: a server may have lost what it had."""
        self._texts = self._texts or {one.id: one.text() for one in kept.served}
        resident, now = self._table.resident(), instant_of(self.clock_ms())
        wanted = {one.id: one for one in kept.served}
        return resident.keys() == wanted.keys() and all(
            found.torn is not None or self._is_as_wanted(found, wanted[schedule_id], now)
            for schedule_id, found in resident.items()
        )

    def _is_as_wanted(self, found: Resident, wanted: Schedule, now: datetime) -> bool:
        is_late = self._table.is_late(wanted, found.next_ms, now=now)
        return found.definition == self._texts[wanted.id] and not is_late


def _ids(placed: Placed) -> set[str]:
    return {one.id for one in placed.served}


def _token_of(error: Exception) -> str:
    if isinstance(error, RedisError):
        return token_of(error)
    return "not-installable" if isinstance(error, ConfigurationError) else "contended"
