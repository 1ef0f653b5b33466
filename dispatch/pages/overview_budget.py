"""The budget as bars: what `manage.py budget` shows, laid out for a page; scopes go by their hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dispatch.console.budget import Budget
from dispatch.console.counts import number_of
from dispatch.money.reading import Standing, WindowUse
from runs.workspace.scope import hash16

_MOST_SCOPES = 5

_WORDS = {
    Standing.OK: ("good", "room left"),
    Standing.HELD: ("warn", "starts are held back"),
    Standing.FULL: ("bad", "used up: nothing starts"),
    Standing.NOT_LIMITED: ("", "not limited"),
    Standing.UNREADABLE: ("bad", "its counter in Valkey holds no whole number: nothing starts"),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One window. `used` and `held_from` are places on a bar of 100, None where nothing is drawn."""

    name: str
    tone: str
    words: str
    is_limited: bool = True
    figures: str = ""
    about: str = ""
    used: float | None = None
    held_from: float | None = None

    @property
    def held_width(self) -> float:
        """How wide the band is in which starts are held back."""
        return 0.0 if self.held_from is None else 100 - self.held_from


def bars(budget: Budget) -> list[Bar]:
    """Lay out day, week and month of container starts, then the day's tokens."""
    starts = [_bar(one.window.value.capitalize(), one, "container starts") for one in budget.use.windows]
    return [*starts, _bar("Tokens today", budget.use.tokens, "tokens")]


def unlimited(shown: Sequence[Bar]) -> str:
    """Say in one sentence what no cap limits; blank where each is limited."""
    free = [one.name for one in shown if not one.is_limited]
    if len(free) == len(shown):
        return "No cap is set: neither container starts nor tokens are limited."
    return f"Not limited: {', '.join(free).lower()}." if free else ""


def scope_notes(budget: Budget) -> list[str]:
    """Say which scopes of their own caps have little or nothing left, by the hash that records have."""
    found = list(_scopes(budget))
    more = len(found) - _MOST_SCOPES
    return [*found[:_MOST_SCOPES], *([f"and {number_of(more, 'more', 'more')}"] if more > 0 else [])]


def _scopes(budget: Budget) -> Iterator[str]:
    for scope, windows in zip(budget.scopes, budget.use.scopes, strict=True):
        for one in windows:
            if one.standing not in {Standing.OK, Standing.NOT_LIMITED}:
                words = _WORDS[one.standing][1]
                yield f"Scope {hash16(scope)}, {one.window.value}: {_figures(one)}; {words}."


def _bar(name: str, use: WindowUse, things: str) -> Bar:
    tone, words = _WORDS[use.standing]
    if use.cap is None or use.used is None:
        return Bar(name, tone, words, is_limited=use.standing is not Standing.NOT_LIMITED)
    held_from = None if use.hold_above is None else _place(use.hold_above, use.cap)
    return Bar(
        name=name,
        tone=tone,
        words=words,
        figures=f"{_figures(use)} {things}",
        about="; ".join(_about(use)),
        used=_place(use.used, use.cap),
        held_from=held_from,
    )


def _about(use: WindowUse) -> Sequence[str]:
    held = [] if use.hold_above is None else [f"beyond {use.hold_above:,} starts are held back"]
    return [
        f"{use.remaining or 0:,} left",
        *held,
        f"counts from 0 again at {use.turns_at:%Y-%m-%d %H:%M} UTC",
    ]


def _figures(use: WindowUse) -> str:
    used = "?" if use.used is None else f"{use.used:,}"
    return f"{used} of {use.cap or 0:,}"


def _place(count: int, of: int) -> float:
    if of <= 0:
        return 100.0
    return round(min(100.0, max(0.0, 100 * count / of)), 1)
