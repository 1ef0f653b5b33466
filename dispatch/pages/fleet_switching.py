"""Turning the switches of one host as `pause`, `resume`, `drain` and `undrain` do, with before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dispatch.console.drained import drained, undrained
from dispatch.console.instants import stamp
from dispatch.console.server import Server, confirming
from dispatch.console.switched import switching
from dispatch.pages.fleet_host_view import Verb
from hosts import names, roster, switches
from hosts.switches import PauseFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What somebody wants of a host: `by` and `reason` are kept with the switch, `lasting` ends it."""

    host: str
    by: str
    reason: str = ""
    lasting: timedelta | None = None

    @property
    def queue(self) -> str:
        """The host's own queue."""
        return names.host_queue(self.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """What was done, said to a person, and the switch before and after as JSON values."""

    said: str
    notes: tuple[str, ...] = ()
    before: Any = None
    after: Any = None


def turn(server: Server, verb: Verb, order: Order) -> Turned:
    """Do it. Raises what `confirming` makes of a fault; repeating is safe."""
    return _TURNS[verb](server, order)


def _pause(server: Server, order: Order) -> Turned:
    before = switches.read(server.client, (order.queue,)).queues[order.queue]
    with switching(server, "paused", (order.queue,), lambda: (order.queue,)):
        flag = switches.pause(
            server.client, (order.queue,), by=order.by, reason=order.reason, lasting=order.lasting
        )
    until = "until resumed" if flag.until_ms is None else f"until {stamp(flag.until_ms)}"
    return Turned(
        said=f"Paused {order.queue} on {server.shown}, {until}.",
        before=as_data(before),
        after=as_data(flag),
    )


def _resume(server: Server, order: Order) -> Turned:
    before = switches.read(server.client, (order.queue,)).queues[order.queue]
    with switching(server, "resumed", (order.queue,), lambda: (order.queue,)):
        ended = switches.resume(server.client, (order.queue,))
        held = switches.read(server.client, (order.queue,))
    still = ("The whole fleet is paused all the same; the kill switch ends that.",) if held.fleet else ()
    return Turned(
        said=f"Resumed {order.queue} on {server.shown}."
        if ended
        else f"{order.queue} had no pause of its own.",
        notes=still,
        before=as_data(before),
        after=as_data(held.queues[order.queue]),
    )


def _drain(server: Server, order: Order) -> Turned:
    before = switches.read(server.client, (), host=order.host).drain
    with confirming(server, "drained", (order.host,), told_by="fleet"):
        flag = switches.drain(
            server.client, order.host, by=order.by, reason=order.reason, lasting=order.lasting
        )
    said, *notes = drained(order.host, flag, roster.read(server.client), shown=server.shown)
    return Turned(said=said, notes=tuple(notes), before=as_data(before), after=as_data(flag))


def _undrain(server: Server, order: Order) -> Turned:
    before = switches.read(server.client, (), host=order.host).drain
    with confirming(server, "undrained", (order.host,), told_by="fleet"):
        ended = switches.undrain(server.client, order.host)
        held = switches.read(server.client, (), host=order.host)
    said, *notes = undrained(order.host, held, ended, shown=server.shown)
    return Turned(said=said, notes=tuple(notes), before=as_data(before), after=as_data(held.drain))


_TURNS: Mapping[Verb, Callable[[Server, Order], Turned]] = {
    Verb.PAUSE: _pause,
    Verb.RESUME: _resume,
    Verb.DRAIN: _drain,
    Verb.UNDRAIN: _undrain,
}


def as_data(flag: PauseFlag | None) -> dict[str, Any] | None:
    """Put a switch into the shape of the log; None while it does not hold. Instants in ms."""
    if flag is None:
        return None
    return {"by": flag.by, "reason": flag.reason, "since": flag.since_ms, "until": flag.until_ms}
