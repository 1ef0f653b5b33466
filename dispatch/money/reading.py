"""What the spend counters say, for people and programs: one bounded read of the ledgers in question.

Nothing here decides about a job. Only limited windows are counted (Q 8.2); of others there is none to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import redis

from dispatch.money.ledger import ScopeCaps
from dispatch.money.windows import (
    GLOBAL_PREFIX,
    Caps,
    State,
    Window,
    count_of,
    counter_key,
    hold_above,
    scope_prefix,
    state_of,
    token_counter_key,
    tokens_are_spent,
    window_end,
)


class Standing(StrEnum):
    """What meets the next start; an unreadable counter lets nothing start."""

    OK = "ok"
    HELD = "held"
    FULL = "full"
    NOT_LIMITED = "not-limited"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowUse:
    """One window now: `used` of `cap` (container starts, or tokens), until it turns at `turns_at` (UTC).

    `cap` is None where it is not limited, `used` then and where the counter `key` is unreadable. Starts above
    `hold_above` are held; None without a soft hold.
    """

    window: Window
    key: str
    turns_at: datetime
    standing: Standing
    used: int | None = None
    cap: int | None = None
    hold_above: int | None = None

    @property
    def remaining(self) -> int | None:
        """How much of the cap is left, held or not; None where there is no telling."""
        return None if self.cap is None or self.used is None else max(0, self.cap - self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """All windows at one instant; `scopes` in the order in which they were asked for."""

    now: datetime
    windows: tuple[WindowUse, ...]
    tokens: WindowUse
    scopes: tuple[tuple[WindowUse, ...], ...]


@dataclass(frozen=True, slots=True)
class _Ledger:
    """Whose windows to read."""

    prefix: str
    caps: Caps
    hold_percent: int | None = None

    def keys(self, now: datetime) -> list[str]:
        return [counter_key(self.prefix, window, now) for window, _ in self.caps.active()]


def read_budget(
    client: redis.Redis,
    *,
    now: datetime,
    caps: Caps,
    hold_percent: int | None,
    token_cap: int | None,
    scopes: Sequence[ScopeCaps],
) -> BudgetUse:
    """Read the counters of `now`'s windows in one pipeline; raises what redis-py raises."""
    everything = _Ledger(GLOBAL_PREFIX, caps, hold_percent)
    scoped = [_Ledger(scope_prefix(scope.scope_hash), scope.caps) for scope in scopes]
    tokens = token_counter_key(GLOBAL_PREFIX, now)
    wanted = [key for ledger in (everything, *scoped) for key in ledger.keys(now)]
    counts = _counts(client, [*wanted, tokens])
    return BudgetUse(
        now=now,
        windows=_windows(everything, now, counts),
        tokens=_tokens(tokens, now, counts[tokens], token_cap),
        scopes=tuple(_windows(ledger, now, counts) for ledger in scoped),
    )


def _counts(client: redis.Redis, keys: Sequence[str]) -> Mapping[str, int | None]:
    """Read each counter; None is one that is no whole number."""
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.get(key)
        answers = pipeline.execute(raise_on_error=False)
    return {key: _count(answer) for key, answer in zip(keys, answers, strict=True)}


def _count(answer: object) -> int | None:
    if isinstance(answer, Exception):
        # A key of another type; anything else is the server's fault or a right that we lack.
        if str(answer).startswith("WRONGTYPE"):
            return None
        raise answer
    try:
        return count_of(answer if isinstance(answer, bytes) else None)
    except ValueError:
        return None


def _windows(ledger: _Ledger, now: datetime, counts: Mapping[str, int | None]) -> tuple[WindowUse, ...]:
    return tuple(_window(ledger, window, now, counts) for window in Window)


def _window(ledger: _Ledger, window: Window, now: datetime, counts: Mapping[str, int | None]) -> WindowUse:
    key, turns_at = counter_key(ledger.prefix, window, now), window_end(window, now)
    cap = dict(ledger.caps.active()).get(window)
    if cap is None:
        return WindowUse(window=window, key=key, turns_at=turns_at, standing=Standing.NOT_LIMITED)
    percent, used = ledger.hold_percent, counts[key]
    return WindowUse(
        window=window,
        key=key,
        turns_at=turns_at,
        standing=_standing(used, cap, percent),
        used=used,
        cap=cap,
        hold_above=None if percent is None else hold_above(cap, percent),
    )


def _standing(used: int | None, cap: int, hold_percent: int | None) -> Standing:
    if used is None:
        return Standing.UNREADABLE
    match state_of(used + 1, cap=cap, hold_percent=hold_percent):
        case State.OVER:
            return Standing.FULL
        case State.SOFT_HOLD:
            return Standing.HELD
        case State.OK:
            return Standing.OK


def _tokens(key: str, now: datetime, used: int | None, cap: int | None) -> WindowUse:
    turns_at = window_end(Window.DAY, now)
    if cap is None:
        return WindowUse(window=Window.DAY, key=key, turns_at=turns_at, standing=Standing.NOT_LIMITED)
    if used is None:
        standing = Standing.UNREADABLE
    else:
        standing = Standing.FULL if tokens_are_spent(used, cap=cap) else Standing.OK
    return WindowUse(window=Window.DAY, key=key, turns_at=turns_at, standing=standing, used=used, cap=cap)
