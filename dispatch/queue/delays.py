"""Named points between the lines of a transition, where a test may wait or kill. Off in production."""

from __future__ import annotations

from collections.abc import Callable

# Called with a name such as "after pop" or "before end".
Delays = Callable[[str], None]


def no_delay(_: str) -> None:
    """Go on at once."""
