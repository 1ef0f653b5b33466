"""How the kill switch stands, as a sentence for every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.instants import stamp
from dispatch.console.switched import counted

_LONGEST = 200


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


def state_of(status: Mapping[str, Any]) -> SwitchState:
    """Read it out of the figures of `status`."""
    about = _about(status.get("pause"))
    if status["pausedState"]:
        return SwitchState("bad", "Everything is paused: no job starts.", about)
    if status.get("pausedPartial"):
        queues = status["pausedQueues"]
        are = "is" if len(queues) == 1 else "are"
        return SwitchState("warn", f"{counted(queues)} {are} paused; the other queues run.", about)
    gap = status.get("fleet")
    if gap:
        return SwitchState("warn", f"No pause is seen, but not every queue could be read ({gap}).")
    return SwitchState("good", "No queue is paused: jobs start.")


def unseen(why: str) -> SwitchState:
    """Say that nobody can tell."""
    return SwitchState("warn", "The kill switch cannot be seen from here.", why)


def _about(pause: Mapping[str, Any] | None) -> str:
    if pause is None:
        return ""
    who = f"Paused by {one_line(pause['by'])[:_LONGEST]}" if pause["by"] else "Paused"
    since = f" since {stamp(pause['since'])}" if pause["since"] else ""
    until = pause["until"]
    ends = f" until {stamp(until)}" if until else " until somebody resumes it"
    reason = one_line(pause["reason"])[:_LONGEST]
    return f"{who}{since}{ends}{f': {reason}' if reason else '.'}"
