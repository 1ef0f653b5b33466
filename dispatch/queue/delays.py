"""Named points between the lines of a transition, where a test may wait or kill. Off in production."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

# Called with a name such as "after pop" or "before end".
Delays = Callable[[str], None]


def no_delay(_: str) -> None:
    """Go on at once."""


def between(delays: Delays, name: str, step: Callable[[], Answer]) -> Answer:
    """Do a step between the points "before <name>" and "after <name>"."""
    delays(f"before {name}")
    answer = step()
    delays(f"after {name}")
    return answer
