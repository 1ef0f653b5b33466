"""One schedule from all its sources: what is acted on, when it was due, and the line that is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dispatch.console import schedule_endings
from dispatch.console.schedule_facts import Installed, LastRun, Line, TableLook
from dispatch.console.schedule_history import History
from dispatch.console.schedule_states import NOT_ASKED, Hindrance, besides, told
from dispatch.console.triggers_file import TriggersFile
from dispatch.instants import epoch_ms, instant_of
from dispatch.schedules import missed
from dispatch.schedules.definition import Schedule
from dispatch.schedules.missed import GRACE
from dispatch.schedules.patterns import Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Dues:
    """The latest instant whose grace is over (ms; None: no such), and all whose jobs matter."""

    due_ms: int | None = None
    instants: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One schedule as the file and tables have it; of those the ones that are acted on come first.

    `schedule` is the one that counts, None where none can be read.
    """

    id: str
    file: TriggersFile
    schedule: Schedule | None
    recurrence: Recurrence | None
    installed: tuple[Installed, ...] = ()

    def dues(self, now: datetime, runs: Iterable[LastRun]) -> Dues:
        """Tell what was due until `now` (aware), `runs` being the last runs that are known."""
        since_ms = self._since_ms(runs)
        if self.recurrence is None or since_ms is None:
            return Dues()
        since, over = instant_of(since_ms), now - GRACE
        latest = missed.last_due(self.recurrence, since=since, until=now)
        due = latest
        if latest and latest > over:
            due = missed.last_due(self.recurrence, since=since, until=over)
        instants = frozenset(epoch_ms(one) for one in (latest, due) if one)
        return Dues(due_ms=epoch_ms(due) if due else None, instants=instants)

    def line(
        self, now: datetime, dues: Dues, past: History, hindered: Hindrance | None, upcoming: int
    ) -> Line:
        """Judge it; `hindered` is what keeps it from being acted on."""
        verdict = missed.judge(
            dues.due_ms,
            past.occurrences,
            now_ms=epoch_ms(now),
            hindered=hindered.reason if hindered else None,
        )
        state, words, remedy = told(verdict, hindered, past.newest_wait)
        if not remedy and past.last and schedule_endings.is_bad(past.last):
            state, remedy = past.last.outcome, schedule_endings.remedy(self.id, past.last)
            words = "; ".join(filter(None, (schedule_endings.brief(past.last), besides(words))))
        will_start = any(one.torn is None for one in self.installed)
        return Line(
            id=self.id,
            pattern=self.schedule.pattern if self.schedule else "",
            zone=self.schedule.zone if self.schedule else "",
            authored=self.file.cron.get(self.id),
            installed=self.installed,
            upcoming=self._upcoming(now, upcoming) if will_start else (),
            last=past.last,
            verdict=verdict,
            state=state,
            words=words,
            remedy=remedy,
            differs=self._differs,
        )

    def unasked(self, now: datetime, runs: Sequence[LastRun], upcoming: int) -> Line:
        """Tell what the file alone says of it."""
        return Line(
            id=self.id,
            pattern=self.schedule.pattern if self.schedule else "",
            zone=self.schedule.zone if self.schedule else "",
            authored=self.file.cron.get(self.id),
            upcoming=self._upcoming(now, upcoming),
            last=max(runs, key=lambda one: one.instant_ms, default=None),
            state=NOT_ASKED,
            words="how it stands is in Valkey, which was not reached",
        )

    @property
    def _differs(self) -> bool:
        authored = self.file.schedules.get(self.id)
        own = [one for one in self.installed if one.queue == self.file.queue and one.torn is None]
        return authored is not None and any(one.schedule != authored for one in own)

    def _since_ms(self, runs: Iterable[LastRun]) -> int | None:
        """Tell since when it has to keep its word: put in as it is, torn down, else last run."""
        same = [one for one in self.installed if _when(one.schedule) == _when(self.schedule)]
        found = [one.torn.at_ms if one.torn else one.since_ms for one in same]
        known = [one for one in found if one is not None]
        if known:
            return min(known)
        return next((run.instant_ms for run in runs if not run.by_hand), None)

    def _upcoming(self, now: datetime, count: int) -> tuple[int, ...]:
        kept = [one.next_ms for one in self.installed if one.torn is None]
        if count == 1 and kept and kept[0] is not None and kept[0] > epoch_ms(now):
            # What its table has is what will be.
            return (kept[0],)
        found: list[int] = []
        instant: datetime | None = now
        while self.recurrence and instant and len(found) < count:
            instant = self.recurrence.after(instant)
            found += [epoch_ms(instant)] if instant else []
        return tuple(found)


def cases(file: TriggersFile, tables: Iterable[TableLook]) -> Mapping[str, Case]:
    """Make a case of each schedule by id: those of the file in its order, then those only in tables."""
    looks = {look.queue.queue: look for look in tables}
    found: dict[str, list[Installed]] = {one: [] for one in file.schedules}
    for look in looks.values():
        for one, installed in look.installed.items():
            found.setdefault(one, []).append(installed)
    others = sorted(found.keys() - file.schedules.keys())

    def rank(one: Installed) -> tuple[bool, bool, bool, str]:
        return (one.torn is not None, not looks[one.queue].has_worker, one.queue != file.queue, one.queue)

    return {one: _case(one, file, sorted(found[one], key=rank)) for one in (*file.schedules, *others)}


def _case(schedule_id: str, file: TriggersFile, installed: Iterable[Installed]) -> Case:
    installed = tuple(installed)
    readable = (one.schedule for one in installed if one.schedule)
    schedule = next(readable, file.schedules.get(schedule_id))
    return Case(
        id=schedule_id,
        file=file,
        schedule=schedule,
        recurrence=_recurrence(schedule) if schedule else None,
        installed=installed,
    )


def _recurrence(schedule: Schedule) -> Recurrence | None:
    try:
        return schedule.recurrence()
    except ValueError:
        return None


def _when(schedule: Schedule | None) -> tuple[str, str] | None:
    return (schedule.pattern, schedule.zone) if schedule else None
