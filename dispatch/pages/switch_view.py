"""How the kill switch stands and what it holds or would hold, in words: what its page lays out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dispatch.console.arguments import one_line
from dispatch.console.counts import number_of
from dispatch.console.fleet_facts import FleetFacts, QueueLook, StopAsked
from dispatch.console.instants import span, stamp
from dispatch.console.pause_shown import about, of
from dispatch.console.running import Running, RunningOne
from dispatch.console.stop_shown import UNLISTED
from dispatch.pages.queue_asked import token_of
from dispatch.pages.switch_state import SwitchState, state_of
from hosts import keys
from hosts.rows import LATE_MS, Unreachable

#: More rows of one table are counted instead.
MOST_ROWS = 500
_LONGEST = 200
_LONGEST_PAUSE = 700
_UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """One queue. `tone` is good, warn or bad; a figure that cannot be read is a word."""

    name: str
    tone: str
    state: str
    about: str
    waiting: str
    active: str
    asleep: str
    has_own_pause: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningLine:
    """One container that runs; `about` has what a person should know of its host.

    `token` names its job in addresses, None where none can.
    """

    place: str
    container: str
    job_id: str
    token: str | None
    ends: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchView:
    """The switch at `seen_at`. `notes` are half-switched states and what cannot be seen.

    `has_both`: the fleet is paused, or a request of its to stop stands, and queues are paused by themselves.
    """

    state: SwitchState
    notes: tuple[str, ...]
    queues: tuple[QueueLine, ...]
    more_queues: int
    sums: str
    running: tuple[RunningLine, ...]
    more_running: int
    running_head: str
    has_pause: bool
    has_both: bool
    seen_at: str


@dataclass(frozen=True, slots=True)
class PausesLeft:
    """The pauses that `end` with an action and those that `stay`, in words."""

    end: tuple[str, ...]
    stay: tuple[str, ...]


def view(facts: FleetFacts, running: Running | None, *, queues: Sequence[str] = ()) -> SwitchView:
    """Lay out the fleet, or the named queues of it; `running` is None where it could not be read."""
    looks = [facts.queues.get(name, QueueLook(name=name)) for name in queues] or list(facts.queues.values())
    ones = running.ones if running else ()
    own = [look for look in facts.queues.values() if look.pause]
    return SwitchView(
        state=state_of(facts),
        notes=tuple(_notes(facts, running)),
        queues=tuple(_queue(look, facts) for look in looks[:MOST_ROWS]),
        more_queues=max(0, len(looks) - MOST_ROWS),
        sums=_sums(looks),
        running=tuple(map(_running, ones[:MOST_ROWS])),
        more_running=max(0, len(ones) - MOST_ROWS),
        running_head=_running_head(running),
        has_pause=bool(facts.pause or facts.stops or own),
        has_both=bool(own and (facts.pause or not all(stop.came_with_drain for stop in facts.stops))),
        seen_at=stamp(facts.now_ms),
    )


def pauses(facts: FleetFacts, ends: Callable[[str], bool]) -> PausesLeft:
    """Name every pause that holds, by whether it `ends`."""
    every = {keys.FLEET: facts.pause, **{name: look.pause for name, look in facts.queues.items()}}
    said = {scope: _clipped(of(scope, pause), _LONGEST_PAUSE) for scope, pause in every.items() if pause}
    return PausesLeft(
        end=tuple(text for scope, text in said.items() if ends(scope)),
        stay=tuple(text for scope, text in said.items() if not ends(scope)),
    )


def _notes(facts: FleetFacts, running: Running | None) -> list[str]:
    notes = []
    if isinstance(facts.roster, Unreachable):
        notes.append(
            f"The registry of hosts cannot be read ({facts.roster.reason}): there may be more queues and"
            " hosts than are named here. A pause of the whole fleet holds those as well."
        )
    notes += [_asked(stop, facts) for stop in facts.stops[:MOST_ROWS]]
    if facts.drained:
        takes = "takes" if len(facts.drained) == 1 else "take"
        notes.append(f"Drained: {_listed(sorted(facts.drained))} {takes} no job, paused or not.")
    if running and running.unread:
        unread = _listed([f"{key} ({token})" for key, token in running.unread.items()])
        notes.append(f"More may run than is named here; not readable: {unread}.")
    return notes


def _asked(stop: StopAsked, facts: FleetFacts) -> str:
    before = f" before {stamp(stop.at_ms)}" if stop.at_ms else ""
    by = f", asked by {stop.by}" if stop.by else ""
    return f"{stop.host} stops what it had begun{before}{by}. {_taken_back_by(stop, facts)}"


def _taken_back_by(stop: StopAsked, facts: FleetFacts) -> str:
    """Say what takes a request back: the end of the drain that it came with, or that of the fleet's pause."""
    if stop.came_with_drain:
        drain = "Ending its drain" if stop.host in facts.drained else "Its drain is over; undraining it"
        return (
            f"{drain} takes that back, and so does resuming everything; resuming the fleet's pause only does"
            " not."
        )
    stands = "" if facts.pause else "The fleet is not paused, but this stands. "
    return f"{stands}Resuming everything, or the fleet's pause only, takes that back."


def _queue(look: QueueLook, facts: FleetFacts) -> QueueLine:
    tone, said, about = _standing(look, facts)
    asleep = None if look.deferred is None or look.held is None else look.deferred + look.held
    return QueueLine(
        name=look.name,
        tone=tone,
        state=said,
        about=about,
        waiting=_figure(look.waiting),
        active=_figure(look.active),
        asleep=_figure(asleep),
        has_own_pause=look.pause is not None,
    )


def _standing(look: QueueLook, facts: FleetFacts) -> tuple[str, str, str]:
    """Say whether jobs start from the queue: tone, words, and who holds it."""
    if facts.pause:
        by_itself = f"and by itself, {about(look.pause)}" if look.pause else ""
        return "bad", "paused with the fleet", by_itself
    if look.pause:
        return "bad", "paused", about(look.pause)
    if look.name not in facts.queues:
        return "warn", "not known here", ""
    if look.host in facts.drained:
        return "warn", "not paused; its host is drained", ""
    if not facts.is_taken_from(look):
        return "warn", "not paused; no worker takes from it", ""
    return "good", "takes jobs", ""


def _sums(looks: Sequence[QueueLook]) -> str:
    """Add up what stands in these queues; what cannot be read counts as nothing."""
    waiting = sum(look.waiting or 0 for look in looks)
    active = sum(look.active or 0 for look in looks)
    asleep = sum((look.deferred or 0) + (look.held or 0) for look in looks)
    where = number_of(len(looks), "queue", "queues")
    waits = number_of(waiting, "job waits", "jobs wait")
    return f"{where}: {waits}, {active} active, {asleep} deferred or held."


def _running_head(running: Running | None) -> str:
    if running is None:
        return "What runs cannot be seen."
    if not running.ones:
        return "No container runs."
    are = number_of(len(running.ones), "container runs", "containers run")
    return f"{are} on {number_of(len(running.hosts), 'host', 'hosts')}."


def _running(one: RunningOne) -> RunningLine:
    is_silent = one.silent_ms is not None and one.silent_ms > LATE_MS
    deadline = one.container.deadline_ms
    return RunningLine(
        place=_clipped(one.place),
        container=_clipped(one.container.name) or UNLISTED,
        job_id=_clipped(one.container.job_id) or "?",
        token=token_of(one.container.job_id),
        ends="" if deadline is None else stamp(deadline),
        about=f"silent for {span(one.silent_ms or 0)}" if is_silent else "",
    )


def _clipped(text: str, longest: int = _LONGEST) -> str:
    """Make a text of a peer's printable and short."""
    return one_line(text)[:longest]


def _figure(count: int | None) -> str:
    return _UNREADABLE if count is None else str(count)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - 8
    return _clipped(", ".join(names[:8])) + (f" and {more} more" if more > 0 else "")
