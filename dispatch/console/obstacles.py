"""What keeps all jobs of a queue from being taken: pauses, drains, and workers that are not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dispatch.console.instants import span
from dispatch.console.pause_shown import ended_by, who_and_why
from dispatch.queue.timings import Timings
from hosts.keys import FLEET
from hosts.names import host_of_queue
from hosts.switches import PauseFlag

FLEET_PAUSED = "fleet-paused"
QUEUE_PAUSED = "queue-paused"
NO_WORKER = "no-worker"
DRAINED = "drained"
ENGINE_SILENT = "engine-silent"

TIMINGS = Timings()


@dataclass(frozen=True, slots=True)
class Drain:
    """The drain of a worker, by its name; `flag` is None where nobody knows who and why."""

    host: str
    flag: PauseFlag | None = None


# No slots: what holds for all its jobs is worked out once.
@dataclass(frozen=True, kw_only=True)
class QueueFacts:
    """What holds for every job of a queue at `now_ms`: the pauses, and boot to last beat (ms) of its workers.

    A pause of the `fleet` comes before the queue's `own`. `drained`: boot to drain, of those workers that
    take nothing for now; `blind`: boot to name of those whose container engine does not answer, which take
    nothing either. `last_beat_ms` is of the one host whose queue it is, when anybody knows.
    """

    queue: str
    now_ms: int
    fleet: PauseFlag | None = None
    own: PauseFlag | None = None
    beats: Mapping[str, int] = field(default_factory=dict)
    drained: Mapping[str, Drain] = field(default_factory=dict)
    blind: Mapping[str, str] = field(default_factory=dict)
    last_beat_ms: int | None = None

    def silence_ms(self, boot: str | None) -> int | None:
        """Tell for how long a worker has been silent that is about to lose its jobs; None: it lives."""
        silent = self.now_ms - self.beats.get(boot or "", self.now_ms)
        return silent if silent > TIMINGS.late * 1000 else None

    @property
    def has_worker(self) -> bool:
        """Whether a worker that takes from the queue lives."""
        return bool(self._living)

    @cached_property
    def all_drained(self) -> tuple[Drain, ...]:
        """The drains of its workers, each host's once, when every one that lives is drained."""
        if not all(boot in self.drained for boot in self._living):
            return ()
        drains = [self.drained[boot] for boot in self._living]
        return tuple({one.host: one for one in drains}.values())

    @cached_property
    def all_blind(self) -> tuple[str, ...]:
        """The workers whose engine does not answer, when no other one that lives takes jobs."""
        takes = [boot for boot in self._living if boot not in self.drained and boot not in self.blind]
        blind = {self.blind[boot] for boot in self._living if boot in self.blind}
        return () if takes else tuple(sorted(blind))

    @cached_property
    def _living(self) -> tuple[str, ...]:
        return tuple(boot for boot in sorted(self.beats) if self.silence_ms(boot) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What keeps all jobs of a queue from being taken: its token, half a sentence, and what ends it."""

    reason: str
    brief: str
    remedy: str
    until_ms: int | None = None

    def __str__(self) -> str:
        return f"{self.brief}; {self.remedy}"


def obstacle(facts: QueueFacts) -> Obstacle | None:
    """Say what keeps the queue's jobs from being taken; None when it is only their turn that is not yet."""
    flag = facts.fleet or facts.own
    if flag is not None:
        what = "the whole fleet" if facts.fleet else f"the queue {facts.queue}"
        stays = f", and the pause of {facts.queue} itself stays" if facts.fleet and facts.own else ""
        return Obstacle(
            reason=FLEET_PAUSED if facts.fleet else QUEUE_PAUSED,
            brief=f"{what} is paused{who_and_why(flag)}",
            remedy=f"{ended_by(FLEET if facts.fleet else facts.queue)} ends that{stays}",
            until_ms=flag.until_ms,
        )
    if not facts.has_worker:
        return _nobody(facts)
    if facts.all_drained:
        return _drained(facts)
    return _blind(facts.all_blind) if facts.all_blind else None


def _blind(hosts: Sequence[str]) -> Obstacle:
    whose = f"the worker {hosts[0]} takes no job: its container engine does"
    if len(hosts) > 1:
        whose = f"the workers {', '.join(hosts)} take no job: their container engines do"
    return Obstacle(
        reason=ENGINE_SILENT,
        brief=f"{whose} not answer",
        remedy="look after the engine there; jobs are taken as soon as it answers",
    )


def _nobody(facts: QueueFacts) -> Obstacle:
    host = host_of_queue(facts.queue)
    if host is None:
        return Obstacle(
            reason=NO_WORKER,
            brief=f"no worker is there to take jobs from {facts.queue}",
            remedy="start one with `manage.py runworker`",
        )
    beat = facts.last_beat_ms
    silent = "" if beat is None else f", silent for {span(facts.now_ms - beat)}"
    return Obstacle(
        reason=NO_WORKER,
        brief=f"the worker {host}, which alone takes jobs from {facts.queue}, is not there{silent}",
        remedy=f"start it there with `manage.py runworker`, or have others do its jobs: {_reroute(host)}",
    )


def _drained(facts: QueueFacts) -> Obstacle:
    drains = facts.all_drained
    ends = [one.flag.until_ms for one in drains if one.flag and one.flag.until_ms is not None]
    until_ms = min(ends, default=None)
    if len(drains) > 1:
        named = ", ".join(one.host for one in drains)
        return Obstacle(
            reason=DRAINED,
            brief=f"all workers that take jobs from {facts.queue} are drained: {named}",
            remedy="`manage.py undrain HOST` ends that for one of them",
            until_ms=until_ms,
        )
    (one,) = drains
    is_own = host_of_queue(facts.queue) is not None
    why = who_and_why(one.flag) if one.flag else ""
    return Obstacle(
        reason=DRAINED,
        brief=f"the worker {one.host}, which alone takes jobs from {facts.queue}, is drained{why}",
        remedy=f"`manage.py undrain {one.host}` ends that"
        + (f", or have others do its jobs: {_reroute(one.host)}" if is_own else ""),
        until_ms=until_ms,
    )


def _reroute(host: str) -> str:
    return f"`manage.py reroute {host}`"
