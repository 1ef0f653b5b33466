"""How the kill switch stands, in words: for its own page, for the overview, and above every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dispatch.console.fleet_facts import FleetFacts, Pause
from dispatch.console.fleet_words import named
from dispatch.console.pause_shown import about
from dispatch.console.switched import MOST_NAMED, counted
from hosts.rows import Unreachable

_LONGEST = 400
_IDLE = "No queue is paused, but no job starts:"


@dataclass(frozen=True, slots=True)
class SwitchState:
    """`tone` is good, warn or bad; `head` says it in a few words, `about` who, why and until when."""

    tone: str
    head: str
    about: str = ""

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing that every page has to say."""
        return self.tone == "good"


def state_of(facts: FleetFacts) -> SwitchState:
    """Judge what stands in Valkey."""
    if facts.pause:
        return SwitchState("bad", "The whole fleet is paused: no job starts.", _about(facts.pause))
    paused = {name: look.pause for name, look in facts.queues.items() if look.pause}
    if paused:
        return _partly(paused, [name for name in facts.queues if name not in paused])
    if isinstance(facts.roster, Unreachable):
        gap = f"The registry of hosts cannot be read ({facts.roster.reason})."
        return SwitchState("warn", "No pause is seen, but there may be more queues.", gap)
    if not any(map(facts.is_taken_from, facts.queues.values())):
        return SwitchState("warn", f"{_IDLE} no worker is there.")
    if facts.known.live and all(row.draining for row in facts.known.live):
        return SwitchState("warn", f"{_IDLE} every host that is there is drained.")
    return SwitchState("good", "No queue is paused: jobs start.")


def unseen(why: str) -> SwitchState:
    """Say that nobody can tell."""
    return SwitchState("warn", "The kill switch cannot be seen from here.", why)


def _partly(paused: dict[str, Pause], free: Sequence[str]) -> SwitchState:
    """Judge pauses of single queues; the first one's who and why, named where others differ."""
    name, first = next(iter(paused.items()))
    who = _about(first) if len(set(paused.values())) == 1 else f"{name}: {_about(first)}"
    if not free:
        later = "The fleet as a whole is not: a queue that appears later takes jobs."
        return SwitchState("bad", "Every known queue is paused, each by itself.", f"{later} {who}")
    are = "is" if len(paused) == 1 else "are"
    of = f"{len(paused)} of {len(paused) + len(free)} queues {are} paused"
    head = f"{of}: {named(list(paused), most=MOST_NAMED)}."
    return SwitchState("warn", head, f"Not paused: {counted(free)}. {who}")


def _about(pause: Pause) -> str:
    return f"Paused {about(pause)}"[:_LONGEST]
