"""What is known of schedules, as values: tables of queues, jobs, runs. Instants are ms of Valkey's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dispatch.console.findings import Mark
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.obstacles import Obstacle, QueueFacts, obstacle
from dispatch.console.triggers_file import TriggersFile
from dispatch.queue.entries import Entry
from dispatch.schedules.definition import Schedule
from dispatch.schedules.missed import MissedReason, Verdict
from dispatch.schedules.notes import Acted, Torn
from dispatch.triggers.entries import CronOn, Trigger
from hosts.rows import HostRow

# What no clock ends: somebody has to act.
_FAILS = {MissedReason.TORN_DOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One schedule in the table of one queue.

    `schedule` is None where the definition cannot be read. With `torn` the stall guard has taken it out, and
    `schedule` is what was taken out.
    """

    queue: str
    schedule: Schedule | None
    next_ms: int | None = None
    since_ms: int | None = None
    acted: Acted | None = None
    torn: Torn | None = None


# No slots: what holds for all its schedules is worked out once.
@dataclass(frozen=True, kw_only=True)
class TableLook:
    """What one queue has of schedules, by id; `unreadable` says why there are none, as a token.

    `queue` has who takes from it and what keeps them from that, `host` whose own it is, if that one is there.
    """

    queue: QueueFacts
    host: HostRow | None = None
    installed: Mapping[str, Installed] = field(default_factory=dict)
    unreadable: str = ""

    @cached_property
    def obstacle(self) -> Obstacle | None:
        """What keeps all jobs of the queue from being taken."""
        return obstacle(self.queue)

    @cached_property
    def has_worker(self) -> bool:
        """Whether a worker that takes from the queue lives."""
        return self.queue.has_worker


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLook:
    """One occurrence that is known to the queue; `ended_with` is the token that an ended one ended with."""

    entry: Entry
    ended_with: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """A job of a schedule that has ended; `outcome`, `reason` and `host` are blank where not known.

    `instant_ms` is its instant, or when somebody asked for it by hand (`by_hand`).
    """

    job_id: str
    instant_ms: int
    ended_ms: int | None = None
    outcome: str = ""
    reason: str = ""
    host: str = ""
    by_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One schedule, in the file (`authored`), in tables (`installed`), or both.

    `pattern` and `zone` are those that are acted on; `differs`: the file of this host has another schedule.
    `upcoming` are its next instants. `state` is the token for how it stands, `words` say it; `remedy` says
    what to do, and is blank where that is nothing. `verdict` is None where Valkey was not asked.
    """

    id: str
    pattern: str
    zone: str
    authored: Trigger | None = None
    installed: tuple[Installed, ...] = ()
    upcoming: tuple[int, ...] = ()
    last: LastRun | None = None
    verdict: Verdict | None = None
    state: str
    words: str
    remedy: str = ""
    differs: bool = False

    @property
    def is_alarm(self) -> bool:
        """Whether a person should look after it."""
        return bool(self.remedy)

    @property
    def mark(self) -> Mark:
        """How bad it is, alike wherever it is told."""
        if not self.is_alarm:
            return Mark.OK
        reasons = {self.state, self.verdict.reason if self.verdict else None}
        return Mark.FAILED if reasons & _FAILS else Mark.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All schedules at `now_ms`: the file's in its order, then those that only tables have, by id.

    `fleet` is None where Valkey was not asked, and `tables` is empty then. `has_runs` is False where the run
    table could not be read. `disagreed_with`: the live hosts whose schedules are not those of the file.
    `ran_by`: of one-shots that this host could not disarm, by their place, the job that spent each.
    """

    now_ms: int
    file: TriggersFile
    lines: tuple[Line, ...]
    fleet: FleetFacts | None = None
    tables: tuple[TableLook, ...] = ()
    has_runs: bool = True
    disagreed_with: tuple[str, ...] = ()
    ran_by: Mapping[int, str] = field(default_factory=dict)

    @property
    def rules(self) -> tuple[Trigger, ...]:
        """The entries of the file that are no schedules, in its order."""
        entries = self.file.triggers.entries if self.file.triggers else ()
        return tuple(one for one in entries if not isinstance(one.on, CronOn))

    @property
    def differs_on(self) -> tuple[str, ...]:
        """The hosts whose workers have loaded another version of the file than stands here."""
        digest, rows = self.file.digest, self.fleet.rows if self.fleet else ()
        return tuple(row.name for row in rows if digest and row.fp_triggers and row.fp_triggers != digest)

    @property
    def is_behind(self) -> bool:
        """Whether the worker of this host, by its declared name, has loaded another version."""
        return self.file.name in self.differs_on
