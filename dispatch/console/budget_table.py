"""The table of `budget`: one line a window, on a terminal with a bar at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dispatch.console.budget import Budget
from dispatch.console.budget_bars import Ink, bar, room
from dispatch.money.reading import Standing, WindowUse

_HEADINGS = ("", "used", "cap", "left", "hold", "state", "until")
_NUMBERS = frozenset({1, 2, 3, 4})
_NAME_WIDTH = 7


def table(budget: Budget, *, columns: int | None, ink: Ink) -> list[str]:
    """Lay the budget out as lines; `columns` is the width of the terminal, None where there is none.

    Bars fill what a line has left, if that is enough for one. A scope's name is made printable and otherwise
    shown as it is, however long.
    """
    use = budget.use
    groups = [("container starts", use.windows), ("tokens", (use.tokens,))]
    groups += [
        (_printable(scope), _limited(windows))
        for scope, windows in zip(budget.scopes, use.scopes, strict=True)
    ]
    rows = [_row(one) for _, windows in groups for one in _limited(windows)]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    cells = 0 if columns is None else room(columns - sum(widths) - 2 * len(widths))
    lines = [f"As of {use.now:%Y-%m-%d %H:%M} UTC; every window turns at 00:00 UTC.", ""]
    lines.append(_line(_HEADINGS, widths))
    for name, windows in groups:
        lines += [name, *(_window(one, widths, cells, ink) for one in windows)]
        lines += [] if windows else ["  no spend cap of its own"]
    remarks = list(_remarks(budget, ink if cells else None))
    return [*lines, "", *remarks] if remarks else lines


def _limited(windows: Sequence[WindowUse]) -> tuple[WindowUse, ...]:
    return tuple(one for one in windows if one.cap is not None)


def _row(use: WindowUse) -> tuple[str, ...]:
    return (
        f"  {use.window}".ljust(_NAME_WIDTH),
        _number(use.used),
        _number(use.cap),
        _number(use.remaining),
        "" if use.hold_above is None else _number(use.hold_above),
        use.standing.value,
        f"{use.turns_at:%Y-%m-%d}",
    )


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        text.rjust(width) if place in _NUMBERS else text.ljust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ).rstrip()


def _window(use: WindowUse, widths: Sequence[int], cells: int, ink: Ink) -> str:
    if use.standing is Standing.NOT_LIMITED:
        return f"  {use.window}".ljust(_NAME_WIDTH) + "  not limited"
    drawn = bar(use, cells, ink) if cells else ""
    return f"{_line(_row(use), widths)}  {drawn}".rstrip()


def _remarks(budget: Budget, ink: Ink | None) -> Iterator[str]:
    """Explain what is to be seen; without `ink` no bars are."""
    use = budget.use
    if ink:
        yield ink.legend
    if any(one.hold_above is not None for one in use.windows):
        yield "hold: starts beyond this count are held back."
    for one in (*use.windows, use.tokens, *(one for windows in use.scopes for one in windows)):
        if one.standing is Standing.UNREADABLE:
            yield (
                f"{one.key} holds no whole number: what it bounds cannot start."
                " Deleting it in Valkey lets this window count from 0."
            )


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
