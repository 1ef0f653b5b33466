"""What became of the occurrences of one schedule: put together from jobs, runs and what tables have noted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dispatch.console.obstacles import QueueFacts
from dispatch.console.schedule_facts import Installed, JobLook, LastRun
from dispatch.console.schedule_states import Wait, wait_of
from dispatch.console.standing import ended_as
from dispatch.ids import occurrence_id, occurrence_of
from dispatch.instants import instant_of, instant_or_none
from dispatch.queue.entries import Entry
from dispatch.queue.states import State
from dispatch.schedules.missed import Fate, Occurrence
from hosts.names import host_of_queue


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The occurrences that left a trace, why some wait by instant (ms), and the last run that ended."""

    occurrences: tuple[Occurrence, ...] = ()
    waits: Mapping[int, Wait] = field(default_factory=dict)
    last: LastRun | None = None

    @property
    def newest_wait(self) -> Wait | None:
        """Why the newest one that waits does."""
        return self.waits[max(self.waits)] if self.waits else None


def job_id(schedule_id: str, instant_ms: int) -> str:
    """Name the job of this instant."""
    return occurrence_id(schedule_id, instant=instant_of(instant_ms))


def noted(schedule_id: str, installed: Iterable[Installed]) -> frozenset[int]:
    """Tell which instants (ms) tables have noted as brought into a queue, by whichever host."""
    acted = [one.acted for one in installed if one.acted]
    own = {instant_in(one.job_id, schedule_id) for one in acted}
    # Of what another host was faster with, a table notes the instant, and keeps its own job.
    others = {one.instant_ms for one in acted if not one.waited and instant_or_none(one.instant_ms)}
    return frozenset(one for one in own | others if one is not None)


def instant_in(job_id: str, schedule_id: str) -> int | None:
    """Tell which instant (ms) of the schedule it is the job of; None where no calendar has that."""
    found = occurrence_of(job_id)
    if found is None or found[0] != schedule_id or instant_or_none(found[1]) is None:
        return None
    return found[1]


def history(
    schedule_id: str,
    installed: Sequence[Installed],
    jobs: Mapping[int, JobLook],
    runs: Sequence[LastRun],
    facts_of: Callable[[Entry], QueueFacts],
) -> History:
    """Put together what is known: `jobs` by instant (ms), `runs` the newest records."""
    ended = [*_ended(schedule_id, jobs), *(run for run in runs if not run.by_hand)]
    there = jobs.keys() | {one.instant_ms for one in ended}
    # An id is forgotten a day after its end, and the record may be another host's.
    ended += (_somewhere(schedule_id, instant) for instant in noted(schedule_id, installed) - there)
    waits = {
        instant: wait_of(look.entry, facts_of(look.entry))
        for instant, look in jobs.items()
        if _fate(look) is Fate.WAITING
    }
    return History(
        occurrences=tuple(_occurrences(installed, jobs, ended, waits)),
        waits=waits,
        # Of two sources for one occurrence the one that knows more.
        last=max([*ended, *runs], key=lambda one: (one.instant_ms, one.outcome, one.host), default=None),
    )


def _occurrences(
    installed: Iterable[Installed],
    jobs: Mapping[int, JobLook],
    ended: Iterable[LastRun],
    waits: Mapping[int, Wait],
) -> Iterator[Occurrence]:
    for run in ended:
        yield Occurrence(instant_ms=run.instant_ms, fate=Fate.ENDED)
    for instant, look in jobs.items():
        if _fate(look) is Fate.RUNNING:
            yield Occurrence(instant_ms=instant, fate=Fate.RUNNING)
    for instant, wait in waits.items():
        yield Occurrence(instant_ms=instant, fate=Fate.WAITING, why=wait.why, held=wait.held)
    for one in installed:
        if one.acted and one.acted.waited:
            yield Occurrence(instant_ms=one.acted.instant_ms, fate=Fate.SKIPPED)


def _fate(look: JobLook) -> Fate:
    if look.entry.state.is_over:
        return Fate.ENDED
    return Fate.RUNNING if look.entry.state is State.STARTED else Fate.WAITING


def _ended(schedule_id: str, jobs: Mapping[int, JobLook]) -> Iterator[LastRun]:
    for instant, look in jobs.items():
        if look.entry.state.is_over:
            outcome, reason = ended_as(look.entry.state, look.ended_with)
            is_known = look.ended_with is not None or look.entry.state is State.FAILED
            yield LastRun(
                job_id=job_id(schedule_id, instant),
                instant_ms=instant,
                ended_ms=look.entry.since_ms,
                outcome=outcome.value if is_known else "",
                reason=reason or "",
                host=host_of_queue(look.entry.queue) or "",
            )


def _somewhere(schedule_id: str, instant_ms: int) -> LastRun:
    return LastRun(job_id=job_id(schedule_id, instant_ms), instant_ms=instant_ms)
