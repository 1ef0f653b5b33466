"""A pause or a drain that holds, in words and as data: who, why, since when and until when."""

from __future__ import annotations

from typing import Any, Protocol

from dispatch.console.fleet_words import clipped
from dispatch.console.instants import ahead, stamp
from hosts import keys


class Held(Protocol):
    """A switch that holds; instants in ms of Valkey's clock, `until_ms` None: until somebody ends it."""

    @property
    def by(self) -> str:
        """Who turned it; blank: nobody says."""

    @property
    def reason(self) -> str:
        """What for; blank: nobody says."""

    @property
    def since_ms(self) -> int | None:
        """When it was turned; None or 0: nobody knows."""

    @property
    def until_ms(self) -> int | None:
        """When it ends by itself."""


def until(until_ms: int | None, *, ended: str = "resumed") -> str:
    """Say until when it holds; `ended` is the word for somebody's ending it."""
    return f"until {ended}" if until_ms is None else f"until {stamp(until_ms)}"


def who_and_why(held: Held) -> str:
    """Say who did it and what for, as the end of a sentence."""
    who = f" by {clipped(held.by)}" if held.by else ""
    return f"{who}: {held.reason}" if held.reason else who


def about(held: Held, *, ended: str = "resumed") -> str:
    """Say by whom, since when, until when and why."""
    by = f"by {held.by} " if held.by else ""
    since = f"since {stamp(held.since_ms)} " if held.since_ms else ""
    why = f": {held.reason}" if held.reason else ""
    return f"{by}{since}{until(held.until_ms, ended=ended)}{why}"


def ended_by(scope: str) -> str:
    """Name the command that ends the pause of this queue, or of the fleet with what it stops; no other."""
    return f"`manage.py resume {'--fleet-only' if scope == keys.FLEET else scope}`"


def of(scope: str, held: Held | None) -> str:
    """Name the pause of a queue, or of the fleet, with all that is known of it; None: nothing is."""
    name = "the whole fleet" if scope == keys.FLEET else scope
    return f"{name}, paused {about(held)}" if held else name


def in_short(held: Held, now_ms: int) -> str:
    """Say that it is paused, by whom, why and for how long, for a cell of a table."""
    ends = f" (ends {ahead(held.until_ms, now_ms)})" if held.until_ms else ""
    return f"paused{who_and_why(held)}{ends}"


def as_data(held: Held | None) -> dict[str, Any] | None:
    """Give it in the shape of commands' JSON and of the log of actions; None while nothing holds."""
    if held is None:
        return None
    return {"by": held.by, "reason": held.reason, "since": held.since_ms, "until": held.until_ms}
