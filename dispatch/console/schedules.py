"""Reading schedules for `triggers`, `doctor` and pages: constant round trips, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dispatch.console import schedule_reading
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.obstacles import QueueFacts
from dispatch.console.schedule_absence import absence
from dispatch.console.schedule_case import Case, Dues, cases
from dispatch.console.schedule_differences import disagreement
from dispatch.console.schedule_facts import JobLook, LastRun, Line, Overview, TableLook
from dispatch.console.schedule_history import history, job_id, noted
from dispatch.console.schedule_runs import LastRuns, Runs
from dispatch.console.schedule_states import Hindrance, hindrance
from dispatch.console.triggers_file import TriggersFile
from dispatch.instants import epoch_ms, instant_of
from dispatch.queue.entries import Entry
from dispatch.schedules import placement
from dispatch.schedules.unserved import UnservedReason
from dispatch.triggers.claims import not_disarmed
from dispatch.triggers.entries import Disarmed, wire
from hosts import names
from runs.oneshot import one_shot_of_entry

if TYPE_CHECKING:
    import redis

# A clock may be ahead of Valkey's; what a record says of a later instant is no run of a schedule.
_AHEAD_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What tables and file say, before anybody looked for runs and jobs; `cases` by id."""

    now_ms: int
    file: TriggersFile
    fleet: FleetFacts
    tables: Sequence[TableLook]
    cases: Mapping[str, Case]

    def last(self, runs: Runs) -> LastRuns:
        """Find the last runs; a page does so outside of what it asks of Valkey."""
        return runs(self.cases, self.now_ms + _AHEAD_MS)


def read(
    client: redis.Redis, fleet: FleetFacts, file: TriggersFile, runs: Runs, *, upcoming: int = 1
) -> Overview:
    """Judge the schedules of the file and of all tables; `upcoming` next instants are told of each.

    Four round trips at most beside those of `circumstances.read`; raises what redis-py raises. `fleet` was
    read before, `runs` finds last runs.
    """
    begun = begin(client, fleet, file)
    return finish(client, begun, begun.last(runs), upcoming=upcoming)


def begin(client: redis.Redis, fleet: FleetFacts, file: TriggersFile) -> Begun:
    """Do the first half of `read`: the tables."""
    queues = names.union(fleet.queues, [file.queue])
    now_ms, tables = schedule_reading.tables(client, queues, fleet.rows, file.schedules)
    return Begun(now_ms=now_ms, file=file, fleet=fleet, tables=tables, cases=cases(file, tables))


def finish(client: redis.Redis, begun: Begun, last: LastRuns, *, upcoming: int = 1) -> Overview:
    """Do the second half of `read`: the jobs of their instants, and the judgement; asks nobody for runs."""
    file, fleet, tables, found = begun.file, begun.fleet, begun.tables, begun.cases
    now = instant_of(begun.now_ms)
    dues = {one: case.dues(now, (last or {}).get(one, ())) for one, case in found.items()}
    ids = {
        (one, instant): job_id(one, instant)
        for one, case in found.items()
        for instant in dues[one].instants | noted(one, case.installed)
    }
    jobs = schedule_reading.occurrences(client, ids.values())
    jobs_of: dict[str, dict[int, JobLook]] = {one: {} for one in found}
    for (one, instant), name in ids.items():
        if name in jobs:
            jobs_of[one][instant] = jobs[name]
    is_kept = all(case.installed for case in found.values())
    judge = _Judge(tables, absence(fleet.rows, {} if is_kept else _unserved(file)), now)
    disagreed = disagreement(file, fleet.rows, tables)
    lines = tuple(
        disagreed.told(judge.line(case, dues[one], jobs_of[one], (last or {}).get(one, ()), upcoming))
        for one, case in found.items()
    )
    return Overview(
        now_ms=begun.now_ms,
        file=file,
        lines=lines,
        fleet=fleet,
        tables=tuple(tables),
        has_runs=last is not None,
        disagreed_with=disagreed.hosts,
        ran_by=_ran_by(client, file, fleet),
    )


def of_file(file: TriggersFile, runs: Runs, *, now: datetime, upcoming: int = 1) -> Overview:
    """Tell what the file alone says, where Valkey is not there to be asked; `now` is aware."""
    found = cases(file, ())
    last = runs(found, epoch_ms(now) + _AHEAD_MS)
    lines = tuple(case.unasked(now, (last or {}).get(one, ()), upcoming) for one, case in found.items())
    return Overview(now_ms=epoch_ms(now), file=file, lines=lines, has_runs=last is not None)


class _Judge:
    """What holds for all schedules at one instant."""

    def __init__(
        self, tables: Sequence[TableLook], absent: Callable[[str], Hindrance], now: datetime
    ) -> None:
        self._tables = {look.queue.queue: look for look in tables}
        self._absent = absent
        self._now = now

    def line(
        self,
        case: Case,
        dues: Dues,
        jobs: Mapping[int, JobLook],
        runs: Sequence[LastRun],
        upcoming: int,
    ) -> Line:
        past = history(case.id, case.installed, jobs, runs, self._facts_of)
        hindered = hindrance(case.installed, self._tables) if case.installed else self._absent(case.id)
        return case.line(self._now, dues, past, hindered, upcoming)

    def _facts_of(self, entry: Entry) -> QueueFacts:
        look = self._tables.get(entry.queue)
        return look.queue if look else QueueFacts(queue=entry.queue, now_ms=epoch_ms(self._now))


def _ran_by(client: redis.Redis, file: TriggersFile, fleet: FleetFacts) -> Mapping[int, str]:
    entries = file.triggers.one_shots if file.triggers else ()
    armed = [one for one in entries if not isinstance(one.on, Disarmed)]
    onces = [once for one in armed if (once := one_shot_of_entry(one.index, wire(one)))]
    hosts = [row.host_id for row in fleet.rows if row.host_id and file.name in {None, row.name}]
    return {once.index: job for once, job in not_disarmed(client, onces, hosts=hosts).items()}


def _unserved(file: TriggersFile) -> Mapping[str, UnservedReason]:
    if file.triggers is None:
        return {}
    placed = placement.place(file.triggers, fleet_mode=True, host_zone=file.zone, name=str(file.path))
    return {one.id: one.reason for one in placed.unserved}
