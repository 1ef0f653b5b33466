"""Draining a host and ending that, as `drain` and `undrain` do, with what held before and after."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dispatch.console.drained import drained, undrained
from dispatch.console.pause_shown import as_data
from dispatch.console.server import Server, confirming
from dispatch.console.stop_shown import request_as_data
from hosts import roster, stops, switches
from hosts.switches import PauseFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What somebody wants of a host: `by` and `reason` are kept with the switch, `lasting` ends it."""

    host: str
    by: str
    reason: str = ""
    lasting: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """What was done, said to a person, and the switch before and after as JSON values."""

    said: str
    notes: tuple[str, ...] = ()
    before: Any = None
    after: Any = None


def drain(server: Server, order: Order) -> Turned:
    """Let the host take nothing new. Raises what `confirming` makes of a fault; repeating is safe."""
    before = switches.read(server.client, (), host=order.host).drain
    with confirming(server, "drained", (order.host,), told_by="fleet"):
        flag = switches.drain(
            server.client, order.host, by=order.by, reason=order.reason, lasting=order.lasting
        )
    said, *notes = drained(order.host, flag, roster.read(server.client))
    return Turned(said=said, notes=tuple(notes), before=as_data(before), after=as_data(flag))


def undrain(server: Server, order: Order) -> Turned:
    """Let it take jobs again, likewise; before and after have the request to stop, too, while it stands."""
    drain = switches.read(server.client, (), host=order.host).drain
    before = _with_request(server, order.host, drain)
    with confirming(server, "undrained", (order.host,), told_by="fleet"):
        ended = switches.undrain(server.client, order.host)
        held = switches.read(server.client, (), host=order.host)
        after = _with_request(server, order.host, held.drain)
    said, *notes = undrained(order.host, held, ended)
    return Turned(said=said, notes=tuple(notes), before=before, after=after)


def _with_request(server: Server, host: str, drain: PauseFlag | None) -> Any:
    asked = stops.standing(server.client, [host]).get(host)
    return as_data(drain) if asked is None else {**(as_data(drain) or {}), "stop": request_as_data(asked)}
