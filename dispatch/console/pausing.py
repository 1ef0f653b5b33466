"""Pause and resume, for whoever asks: the steps, what they did as values, and the sentences for it.

`on` is what a sentence says of the server, such as ` on URL`; blank where everybody knows which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from dispatch.console import pause_shown
from dispatch.console.fleet_words import named
from dispatch.console.queues import KnownQueues, known_queues, read_queues
from dispatch.console.server import Server
from dispatch.console.switched import MOST_NAMED, counted, missing, switching, taken_back
from hosts import keys, names, switches
from hosts.switches import PauseFlag, Switches

FLEET = "the whole fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """What holds now: `flag`, on these queues (none: on the fleet); `found` are those that there are."""

    queues: tuple[str, ...]
    flag: PauseFlag
    found: KnownQueues

    def said(self, *, on: str = "") -> str:
        """Say what was paused until when."""
        what = counted(self.queues) if self.queues else f"{FLEET} ({counted(self.found.names)})"
        return f"Paused {what}{on}, {pause_shown.until(self.flag.until_ms)}."

    def notes(self) -> Iterator[str]:
        """Say what a person should know who paused the fleet, or queues by name."""
        if gap := missing(self.found):
            yield gap if self.queues else f"{gap} The pause holds those as well."
        unknown = (queue for queue in self.queues if queue not in self.found.names)
        yield from (f"{queue} was not known here before: is the name right?" for queue in unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedAll:
    """Which pauses were ended: those of these queues, and the fleet's where `fleet`.

    `taken_back` are the hosts that are no longer asked to stop; `before` is how the switches stood right
    before it.
    """

    fleet: bool
    queues: tuple[str, ...]
    taken_back: tuple[str, ...]
    found: KnownQueues
    before: Switches

    @property
    def scopes(self) -> tuple[str, ...]:
        """The same as scopes of pauses."""
        return (*((keys.FLEET,) if self.fleet else ()), *self.queues)

    def said(self, *, on: str = "") -> str:
        """Say what was resumed, and which queues there are."""
        what = FLEET if self.fleet else counted(self.queues)
        there = names.union(self.found.names, self.queues)
        listed = counted(there) if len(there) > 1 else f"queue: {counted(there)}"
        said = f"{f'Resumed {what}' if what else 'Nothing was paused'}{on}; {listed}."
        return said + taken_back(self.taken_back)

    @property
    def own_pauses(self) -> tuple[str, ...]:
        """Each pause of a single queue that was ended, in words: it may have been somebody else's."""
        return tuple(pause_shown.of(queue, self.before.queues.get(queue)) for queue in self.queues)

    def notes(self) -> Iterator[str]:
        """Say what may have been left out."""
        yield from _left_out(self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedFleet:
    """Whether there was a pause of the fleet, that was `ended`; and what holds its queues now.

    `taken_back` are the hosts that are no longer asked to stop.
    """

    ended: bool
    taken_back: tuple[str, ...]
    found: KnownQueues
    held: Switches

    @property
    def scopes(self) -> tuple[str, ...]:
        """The same as scopes of pauses."""
        return (keys.FLEET,) if self.ended else ()

    def said(self, *, on: str = "") -> str:
        """Say what ended, and which pauses still hold."""
        what = "The pause of the whole fleet is ended" if self.ended else f"{FLEET} was not paused"
        rest = self.held.paused_queues
        still = f"still paused: {counted(rest)}" if rest else "no queue is paused any more"
        return f"{what[:1].upper()}{what[1:]}{on}; {still}.{taken_back(self.taken_back)}"

    @property
    def still(self) -> tuple[str, ...]:
        """Each pause that still holds, in words."""
        scopes = {keys.FLEET: self.held.fleet, **self.held.queues}
        return tuple(pause_shown.of(scope, flag) for scope, flag in scopes.items() if flag)

    def notes(self) -> Iterator[str]:
        """Say what may have been left out."""
        yield from _left_out(self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Which of these queues had a pause of their own, that was `ended`; and what holds them now."""

    queues: tuple[str, ...]
    ended: tuple[str, ...]
    held: Switches

    def said(self, *, on: str = "") -> str:
        """Say what was resumed, and what had no pause."""
        idle = [queue for queue in self.queues if queue not in self.ended]
        told = [f"Resumed {counted(self.ended)}"] if self.ended else []
        told += [f"{named(idle, most=MOST_NAMED)} had no pause of its own"] if idle else []
        return f"{'; '.join(told)}{on and f',{on}'}."

    def remedy(self, *, of_fleet: str) -> str:
        """Say what lets them go after a refusal; `of_fleet` is how the fleet's pause is ended here."""
        return f"{of_fleet if self.held.fleet else 'Resuming them again'} ends that."

    def refusal(self, *, on: str = "") -> str:
        """Say which are paused all the same, and why; blank: none is."""
        if not self.held.paused_queues:
            return ""
        why = f"{FLEET} is paused" if self.held.fleet else "somebody paused them again"
        return f"Still paused{on}: {named(self.held.paused_queues, most=MOST_NAMED)}, because {why}."


def pause(
    server: Server, queues: Sequence[str], *, by: str, reason: str, lasting: timedelta | None
) -> Paused:
    """Pause these (valid) queues, or the fleet when there are none. Raises PidispatchError, as all here."""
    # A pause of the fleet holds every queue, found or not: nothing is looked up before it.
    before = read_queues(server.client) if queues else None
    with switching(server, "paused", queues, lambda: queues or known_queues(server.client)):
        scopes = tuple(queues) or (keys.FLEET,)
        flag = switches.pause(server.client, scopes, by=by, reason=reason, lasting=lasting)
    return Paused(queues=tuple(queues), flag=flag, found=before or read_queues(server.client))


def resume_all(server: Server, found: KnownQueues) -> ResumedAll:
    """End every pause and every request of the fleet's to stop; no drain."""
    with switching(server, "resumed", (), lambda: found.names):
        before = switches.read(server.client, found.names)
        ended = switches.resume_all(server.client, queues=found.names, hosts=found.hosts)
    # The list of known queues is anybody's to write: what is no queue of ours is not shown.
    return ResumedAll(
        fleet=keys.FLEET in ended.scopes,
        queues=tuple(filter(names.is_queue, ended.scopes)),
        taken_back=ended.taken_back,
        found=found,
        before=before,
    )


def resume_fleet(server: Server, found: KnownQueues) -> ResumedFleet:
    """End the fleet's pause and its requests to stop; pauses of single queues and drains stay."""
    with switching(server, "resumed", (), lambda: found.names):
        ended = switches.resume_fleet(server.client, hosts=found.hosts)
        held = switches.read(server.client, found.names)
    return ResumedFleet(ended=bool(ended.scopes), taken_back=ended.taken_back, found=found, held=held)


def resume(server: Server, queues: Sequence[str]) -> Resumed:
    """End the own pauses of these (valid) queues; `refusal` tells whether that let them go."""
    with switching(server, "resumed", queues, lambda: queues):
        ended = switches.resume(server.client, queues)
        held = switches.read(server.client, queues)
    return Resumed(queues=tuple(queues), ended=ended, held=held)


def _left_out(found: KnownQueues) -> Iterator[str]:
    """Say that there may be pauses, and requests to stop, of what could not be looked up."""
    if gap := missing(found):
        yield f"{gap} Requests to stop may stand as well. Run it again when that is mended."
