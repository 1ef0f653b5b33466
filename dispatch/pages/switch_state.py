"""How the kill switch stands, as a sentence for every page."""

from __future__ import annotations

from dataclasses import dataclass

from dispatch.console.fleet_facts import FleetFacts, Pause
from dispatch.console.switched import counted
from dispatch.pages.switch_view import about_pause
from hosts.rows import Unreachable

_LONGEST = 400


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
        first = _about(next(iter(paused.values())))
        about = first if len(set(paused.values())) == 1 else f"{next(iter(paused))}: {first}"
        if len(paused) == len(facts.queues):
            return SwitchState("bad", "Every known queue is paused, each by itself.", about)
        are = "is" if len(paused) == 1 else "are"
        return SwitchState("warn", f"Half switched: {counted(list(paused))} {are} paused, others run.", about)
    if isinstance(facts.roster, Unreachable):
        gap = f"the registry of hosts cannot be read ({facts.roster.reason})"
        return SwitchState("warn", f"No pause is seen, but {gap}: there may be more queues.")
    return SwitchState("good", "No queue is paused: jobs start.")


def unseen(why: str) -> SwitchState:
    """Say that nobody can tell."""
    return SwitchState("warn", "The kill switch cannot be seen from here.", why)


def _about(pause: Pause) -> str:
    return f"Paused {about_pause(pause)}"[:_LONGEST]
