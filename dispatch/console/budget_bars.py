"""The bar of one spend window, drawn in characters: never full before the cap is, nor empty when it is not.

Its cells are shares of the cap, what was counted first; those of the soft hold look different.
"""

from __future__ import annotations

from dataclasses import dataclass

from dispatch.money.reading import WindowUse

_NARROWEST, _WIDEST = 8, 40


@dataclass(frozen=True, slots=True)
class Ink:
    """What a cell is drawn with: counted or free, below the hold or above."""

    counted: str
    free: str
    counted_held: str
    free_held: str

    @property
    def legend(self) -> str:
        """Say what the cells mean."""
        return f"{self.counted} used, {self.free} left, {self.free_held} held back ({self.counted_held} used)"


BLOCKS = Ink("\u2588", "\u2591", "\u2593", "\u2592")
ASCII = Ink("#", ".", "=", "-")


def ink_for(encoding: str) -> Ink:
    """Choose what an output of this encoding can print."""
    try:
        BLOCKS.legend.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def room(left: int) -> int:
    """Tell how many cells a bar gets of so many columns; 0 where it would say nothing."""
    return min(_WIDEST, left) if left >= _NARROWEST else 0


def bar(use: WindowUse, cells: int, ink: Ink) -> str:
    """Draw one window in so many cells; nothing where there is no cap or no count."""
    if use.cap is None or use.used is None:
        return ""
    free = use.cap if use.hold_above is None else use.hold_above
    low = _part(free, use.cap, cells)
    counted = _part(min(use.used, free), free, low)
    held = _part(use.used - free, use.cap - free, cells - low)
    return (
        ink.counted * counted
        + ink.free * (low - counted)
        + ink.counted_held * held
        + ink.free_held * (cells - low - held)
    )


def _part(count: int, of: int, cells: int) -> int:
    """Give `count`'s share of the cells: all for all of it only, none for none of it only."""
    if count >= of:
        return cells
    return 0 if count <= 0 else min(cells - 1, max(1, count * cells // of))
