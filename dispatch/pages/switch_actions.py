"""What the page of the kill switch does: pause and resume, as the commands do, with an entry in the log.

An answer of Valkey may be lost: the entry says then that the action is not confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from dispatch.console import pausing
from dispatch.console.arguments import one_line
from dispatch.console.pause_shown import as_data
from dispatch.console.pausing import FLEET
from dispatch.console.queues import KnownQueues, read_queues
from dispatch.console.server import Server
from dispatch.console.stop_shown import requests_as_data
from dispatch.console.switched import MOST_NAMED, switching
from dispatch.pages import audit
from dispatch.pages.acting import acting, by
from hosts import keys, stops, switches
from pidispatch_site.errors import OperationalError

_OF_FLEET = "Resuming the whole fleet"


@dataclass(slots=True)
class Done(audit.Doing):
    """What was done, in a sentence, and what a person should know besides."""

    said: str = ""
    notes: list[str] = field(default_factory=list)


def pause(request: HttpRequest, queues: Sequence[str], *, reason: str, lasting: timedelta | None) -> Done:
    """Pause these (valid) queues, or the fleet when there are none. Raises PidispatchError."""
    with _recorded(request, "pause", queues, reason) as (server, done):
        done.before = _before(server, "paused", queues, asked_of=queues)
        paused = pausing.pause(server, queues, by=by(request), reason=one_line(reason), lasting=lasting)
        done.after = dict.fromkeys(queues or (keys.FLEET,), as_data(paused.flag))
        done.said, done.notes = paused.said(), list(paused.notes())
    return done


def resume_all(request: HttpRequest, *, reason: str) -> Done:
    """End every pause and every request of the fleet's to stop; no drain. Raises PidispatchError."""
    with _recorded(request, "resume", (), reason) as (server, done):
        found = read_queues(server.client)
        done.before = _before_resuming(server, found)
        resumed = pausing.resume_all(server, found)
        done.after = _ended(resumed)
        done.said, done.notes = resumed.said(), list(resumed.notes())
        if resumed.own_pauses:
            done.notes.insert(0, _listed("Pauses of single queues that ended:", resumed.own_pauses))
    return done


def resume_fleet(request: HttpRequest, *, reason: str) -> Done:
    """End the fleet's pause with its requests to stop, and no other. Raises PidispatchError."""
    with _recorded(request, "resume", (), reason) as (server, done):
        found = read_queues(server.client)
        done.before = _before_resuming(server, found)
        resumed = pausing.resume_fleet(server, found)
        done.after = _ended(resumed)
        done.said, done.notes = resumed.said(), list(resumed.notes())
        if resumed.still:
            done.notes.insert(0, _listed("Pauses that still hold:", resumed.still))
    return done


def resume(request: HttpRequest, queues: Sequence[str], *, reason: str) -> Done:
    """End the own pauses of these (valid) queues. Raises PidispatchError, also when the fleet's holds."""
    with _recorded(request, "resume", queues, reason) as (server, done):
        done.before = _before(server, "resumed", queues, asked_of=queues)
        resumed = pausing.resume(server, queues)
        done.after = {"ended": list(resumed.ended)}
        if refusal := resumed.refusal():
            raise OperationalError(f"{refusal} {resumed.remedy(of_fleet=_OF_FLEET)}")
        done.said = resumed.said()
    return done


@contextmanager
def _recorded(
    request: HttpRequest, action: str, queues: Sequence[str], reason: str
) -> Iterator[tuple[Server, Done]]:
    """Act on the server, and record it however it ends."""
    target, done = ", ".join(queues) or FLEET, Done()
    with (
        audit.recorded(request, action, target, reason=reason, doing=done),
        acting(settings.PIDISPATCH_ENVIRONMENT) as server,
    ):
        yield server, done


def _listed(head: str, pauses: Sequence[str]) -> str:
    more = len(pauses) - MOST_NAMED
    return "\n".join([head, *map(one_line, pauses[:MOST_NAMED]), *([f"and {more} more"] if more > 0 else [])])


def _before(server: Server, verb: str, queues: Sequence[str], *, asked_of: Sequence[str]) -> dict[str, Any]:
    """Read for the log how the switches stand; a fault here, too, leaves what was asked for unconfirmed."""
    with switching(server, verb, queues, lambda: asked_of):
        held = switches.read(server.client, asked_of)
    flags = {keys.FLEET: held.fleet, **held.queues}
    return {scope: as_data(flag) for scope, flag in flags.items() if flag}


def _before_resuming(server: Server, found: KnownQueues) -> dict[str, Any]:
    """Read likewise how the switches stand, and the requests to stop where there are some."""
    before = _before(server, "resumed", (), asked_of=found.names)
    with switching(server, "resumed", (), lambda: found.names):
        asked = stops.standing(server.client, found.hosts)
    return {**before, "stops": requests_as_data(asked)} if asked else before


def _ended(resumed: pausing.ResumedAll | pausing.ResumedFleet) -> dict[str, Any]:
    """Tell the log what ended: scopes of pauses, and hosts that are no longer asked to stop, if any were."""
    ended = {"ended": list(resumed.scopes)}
    return {**ended, "takenBack": list(resumed.taken_back)} if resumed.taken_back else ended
