"""What a rung of the ladder is, and how a job climbs (contracts 5).

The rungs themselves stand in `dispatch.ladder`. A rung reads its facts (an edge) and a pure function judges
them, or it takes something and holds it until the attempt ends. Reading is lazy: a job refused by a free rung
never costs what a later one would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from runs.outcome import Refusal

Context = TypeVar("Context")


@dataclass(frozen=True, slots=True)
class Pass:
    """The rung has nothing against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defer:
    """Not now: the job goes back to sleep until `until`, keeping its id, its attempt and its place.

    `scope_hash` names the scope it waits for, so that whoever frees it can wake the oldest waiter. `cause` is
    a token that stays with the job and says more than the reason. `said` is what the event of this deferral
    tells beyond the delay (Q 14); it has none where `is_told`: another event has told it.
    """

    until: datetime
    reason: str
    scope_hash: str | None = None
    cause: str | None = None
    said: Mapping[str, object] = field(default_factory=dict)
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """The rung took something; `release` gives it back when the attempt ends, however it ends."""

    release: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging(Generic[Context]):
    """A rung that asks: `read` fetches facts, `judge` decides on them alone."""

    name: str
    read: Callable[[Context], Any]
    judge: Callable[[Any, datetime], Pass | Defer | Refusal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking(Generic[Context]):
    """A rung that takes: what it holds stands on the attempt's ExitStack."""

    name: str
    take: Callable[[Context], Pass | Held | Defer | Refusal]


Rung = Judging[Context] | Taking[Context]


def climb(
    rungs: Iterable[Rung[Context]],
    context: Context,
    held: ExitStack,
    *,
    now: datetime,
    stop_asked: Callable[[], bool],
) -> Pass | Defer | Refusal | None:
    """Try the rungs in order and answer the first that is not a pass; None when a stop was asked in between.

    `InfraFault` of an edge goes through to the caller: the attempt is tried again.
    """
    for rung in rungs:
        if stop_asked():
            return None
        match _ask(rung, context, now):
            case Held(release=release):
                held.callback(release)
            case Defer() | Refusal() as objection:
                return objection
            case Pass():
                pass
    return None if stop_asked() else Pass()


def _ask(rung: Rung[Context], context: Context, now: datetime) -> Pass | Held | Defer | Refusal:
    match rung:
        case Judging(read=read, judge=judge):
            return judge(read(context), now)
        case Taking(take=take):
            return take(context)
