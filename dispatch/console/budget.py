"""What may still be spent, as values for the command, the admin and programs: caps in force and counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dispatch import configured
from dispatch.effective import Spending, spending_of
from dispatch.instants import instant_of
from dispatch.money.ledger import ScopeCaps, valkey_now
from dispatch.money.reading import BudgetUse, WindowUse, read_budget
from dispatch.operator_files import overlay_file
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.scoped_limits import NO_LIMITS, ScopedLimits
from dispatch.operator_files.scoped_limits import parse as parse_limits
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError
from runs.workspace.scope import hash16

if TYPE_CHECKING:
    import redis

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsInForce:
    """What bounds the next start on this host: `spending` all jobs together, `limits` single scopes."""

    spending: Spending
    limits: ScopedLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The use of every window; `scopes` are the names of the rows whose windows stand in `use.scopes`."""

    use: BudgetUse
    scopes: tuple[str, ...]


def caps_in_force(config: Config) -> CapsInForce:
    """Read settings file and scoped limits; one ConfigurationError with every problem of both files."""
    problems: list[str] = []
    overlay = _read(lambda: overlay_file.read(config.settings_file), problems)
    limits = _read(lambda: _limits(config.scoped_limits_file), problems)
    if overlay is None or limits is None:
        raise ConfigurationError(*problems)
    return CapsInForce(spending=spending_of(configured.spending(config), overlay), limits=limits)


def read(client: redis.Redis, caps: CapsInForce) -> Budget:
    """Read what is counted against the caps at Valkey's time; raises what redis-py raises."""
    spending, rows = caps.spending, caps.limits.rows
    use = read_budget(
        client,
        now=instant_of(valkey_now(client)),
        caps=spending.caps,
        hold_percent=spending.hold_percent,
        token_cap=spending.token_cap,
        scopes=[ScopeCaps(scope_hash=hash16(row.scope), caps=row.caps) for row in rows],
    )
    return Budget(use=use, scopes=tuple(row.scope for row in rows))


def as_data(budget: Budget) -> dict[str, Any]:
    """Put it into the shape of `budget --json`; instants are in ms, unknown figures null."""
    use = budget.use
    return {
        "asOf": _epoch_ms(use.now),
        "windows": _windows(use.windows),
        "tokens": {"recorded": use.tokens.used, **_figures(use.tokens)},
        "scopes": [
            {"scope": scope, "windows": _windows(windows)}
            for scope, windows in zip(budget.scopes, use.scopes, strict=True)
        ],
    }


def _windows(windows: Sequence[WindowUse]) -> list[dict[str, Any]]:
    return [
        {
            "window": one.window.value,
            "reserved": one.used,
            **_figures(one),
            "holdAbove": one.hold_above,
        }
        for one in windows
    ]


def _figures(use: WindowUse) -> dict[str, Any]:
    return {
        "cap": use.cap,
        "remaining": use.remaining,
        "state": use.standing.value,
        "turnsAt": _epoch_ms(use.turns_at),
        "key": use.key,
    }


def _epoch_ms(moment: datetime) -> int:
    return (moment - instant_of(0)) // timedelta(milliseconds=1)


def _limits(path: Path | None) -> ScopedLimits:
    if path is None:
        return NO_LIMITS
    parse = partial(parse_limits, name=str(path))
    return LiveFile(path, parse, label="scoped_limits", count=len).load()


def _read(read: Callable[[], Value], problems: list[str]) -> Value | None:
    try:
        return read()
    except ConfigurationError as error:
        problems += error.problems
        return None
