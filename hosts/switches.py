"""The kill switch: pauses of queues and of the fleet, drains of hosts, as Valkey keeps them (contracts 2).

A queue is paused while the fleet's pause or its own holds. An `until` is judged by the server's clock inside
the scripts, never by a host's. Every other script that must not go on under a switch begins with `HOLDS` and
takes the keys of `keys.switches(queue=…, host=…)` in its KEYS:

    script = client.register_script(switches.HOLDS + text)   # in it: if holds(KEYS[1], now_ms()) then … end

Functions raise redis-py's errors; where an answer was lost, asking again is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import redis

from hosts import keys

_LUA = Path(__file__).parent / "lua"
HOLDS = (_LUA / "holds.lua").read_text()
# The beginning of scripts that turn a switch on: `set_switch`, with `HOLDS` before it.
SETS = HOLDS + (_LUA / "set_switch.lua").read_text()
_PAUSE = SETS + (_LUA / "pause.lua").read_text()
_UNDRAIN, _RESUME_FLEET = ((_LUA / f"{name}.lua").read_text() for name in ("undrain", "resume_fleet"))
_RESUME_ALL, _READ = (HOLDS + (_LUA / f"{name}.lua").read_text() for name in ("resume_all", "read"))

# What an operator writes about a pause is shown in lists and kept without a time limit.
LONGEST_TEXT = 500
# Of an instant (ms); what is longer is somebody's mistake, and Python refuses to read it.
_MOST_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseFlag:
    """One switch that holds: who, why, from when to when (ms of the server's clock; None: until resumed)."""

    by: str
    reason: str
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """What held at one instant: the fleet's pause, each asked queue's own, and the asked host's drain."""

    now_ms: int
    fleet: PauseFlag | None
    queues: Mapping[str, PauseFlag | None]
    drain: PauseFlag | None = None

    def flag(self, queue: str) -> PauseFlag | None:
        """Give the switch that pauses this queue, the fleet's before its own."""
        return self.fleet or self.queues.get(queue)

    @property
    def paused_queues(self) -> tuple[str, ...]:
        """The asked queues that are paused, in the order asked."""
        return tuple(queue for queue in self.queues if self.flag(queue))

    @property
    def all_paused(self) -> bool:
        """Whether every asked queue is paused."""
        return len(self.paused_queues) == len(self.queues)

    @property
    def partly_paused(self) -> bool:
        """Whether some of the asked queues are paused and others are not."""
        return 0 < len(self.paused_queues) < len(self.queues)


@dataclass(frozen=True, slots=True)
class Resumed:
    """What resuming found: the scopes that had a pause (`*` for the fleet), and whose requests it took back.

    Those are requests to stop, by the names of their hosts.
    """

    scopes: tuple[str, ...]
    taken_back: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Undrained:
    """What ending a drain found: whether there was one, and whether the fleet's request to stop stands.

    `took_back`: a request to stop had come with the drain, and ended with it.
    """

    was_drained: bool
    is_asked_to_stop: bool
    took_back: bool


def pause(
    client: redis.Redis,
    scopes: Sequence[str],
    *,
    by: str,
    reason: str,
    lasting: timedelta | None = None,
) -> PauseFlag:
    """Pause queues, or the fleet (`keys.FLEET`): all of them or, on an error, none; durable until resumed.

    Each pause replaces the one before, its end included. `lasting` counts from the server's now.
    """
    if not scopes:
        raise ValueError("a pause without a queue")
    known = {keys.pause(scope): "" if scope == keys.FLEET else scope for scope in scopes}
    return _turn_on(client, known, by=by, reason=reason, lasting=lasting)


def drain(
    client: redis.Redis,
    host: str,
    *,
    by: str,
    reason: str,
    lasting: timedelta | None = None,
) -> PauseFlag:
    """Keep the worker of this name from taking jobs; what it runs goes on. As durable as a pause."""
    return _turn_on(client, {keys.drain(host): ""}, by=by, reason=reason, lasting=lasting)


def undrain(client: redis.Redis, host: str) -> Undrained:
    """End the drain of this worker and the request to stop that came with it; never the fleet's. One step."""
    found = client.register_script(_UNDRAIN)(keys=[keys.drain(host), keys.stop_request(host)])
    return Undrained(*map(bool, found))


def drains(client: redis.Redis, hosts: Sequence[str]) -> Mapping[str, PauseFlag]:
    """Read the drains that hold now among those of these workers, by name; one instant."""
    if not hosts:
        return {}
    _, *rows = client.register_script(_READ)(keys=[keys.drain(host) for host in hosts])
    flags = ((host, _flag(row)) for host, row in zip(hosts, rows, strict=True))
    return {host: flag for host, flag in flags if flag}


def _turn_on(
    client: redis.Redis, known: Mapping[str, str], *, by: str, reason: str, lasting: timedelta | None
) -> PauseFlag:
    """Turn switches on by key; the value is the queue that is known from then on, blank for none."""
    by, reason = by[:LONGEST_TEXT], reason[:LONGEST_TEXT]
    length = "" if lasting is None else str(lasting // timedelta(milliseconds=1))
    since, until = client.register_script(_PAUSE)(
        keys=[keys.QUEUES_KNOWN, *known], args=[by, reason, length, *known.values()]
    )
    return PauseFlag(by=by, reason=reason, since_ms=int(since), until_ms=_instant(until))


def resume(client: redis.Redis, scopes: Sequence[str]) -> tuple[str, ...]:
    """End the own pauses of these queues (or the fleet's) in one step; tell for which there was one.

    A queue stays paused while the fleet's pause holds; `read` tells.
    """
    with client.pipeline(transaction=True) as pipeline:
        for scope in scopes:
            pipeline.delete(keys.pause(scope))
        return tuple(scope for scope, count in zip(scopes, pipeline.execute(), strict=True) if count)


def resume_fleet(client: redis.Redis, *, hosts: Sequence[str] = ()) -> Resumed:
    """End the fleet's pause, and its requests to stop that stand for these hosts, in one step.

    Pauses of queues stay, and so do drains with the requests to stop that came with them.
    """
    named = [keys.pause(keys.FLEET), *map(keys.stop_request, hosts)]
    was_paused, *taken = client.register_script(_RESUME_FLEET)(keys=named)
    return Resumed((keys.FLEET,) if was_paused else (), tuple(hosts[place - 1] for place in taken))


def resume_all(
    client: redis.Redis,
    *,
    queues: Iterable[str] = (),
    hosts: Sequence[str] = (),
) -> Resumed:
    """End every pause, and every request to stop that stands for these hosts; never a drain. One step.

    Pauses of all known queues are found by themselves; `queues` adds names known from elsewhere.
    """
    named = [keys.QUEUES_KNOWN, keys.pause(keys.FLEET), *map(keys.stop_request, hosts)]
    ended, taken = client.register_script(_RESUME_ALL)(keys=named, args=[keys.pause(""), *queues])
    scopes = tuple(sorted({_text(scope) for scope in ended}))
    return Resumed(scopes, tuple(hosts[place - 1] for place in taken))


def read(client: redis.Redis, queues: Sequence[str], *, host: str | None = None) -> Switches:
    """Read which switches hold now for these queues, and for this worker when it is named; one instant."""
    named = [keys.pause(keys.FLEET), *(keys.pause(queue) for queue in queues)]
    if host is not None:
        named.append(keys.drain(host))
    now, fleet, *rest = client.register_script(_READ)(keys=named)
    flags = [_flag(row) for row in rest]
    return Switches(
        now_ms=int(now),
        fleet=_flag(fleet),
        queues=dict(zip(queues, flags, strict=False)),
        drain=flags[-1] if host is not None else None,
    )


def _flag(row: list[Any]) -> PauseFlag | None:
    holds, by, reason, since, until = row
    if not holds:
        return None
    return PauseFlag(
        by=_text(by), reason=_text(reason), since_ms=_instant(since) or 0, until_ms=_instant(until)
    )


def _instant(value: bytes) -> int | None:
    return int(value) if value.isdigit() and len(value) <= _MOST_DIGITS else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
