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
from redis.exceptions import RedisError

from dispatch.console.arguments import one_line
from dispatch.console.instants import stamp
from dispatch.console.queues import KnownQueues, known_queues, read_queues
from dispatch.console.server import Server
from dispatch.console.switched import counted, missing, switching
from dispatch.pages import audit
from dispatch.pages.acting import acting, by
from hosts import keys, names, switches
from hosts.switches import PauseFlag, Switches
from pidispatch_site.errors import OperationalError

FLEET = "the whole fleet"


@dataclass(slots=True)
class Done(audit.Doing):
    """What was done, in a sentence, and what a person should know besides."""

    said: str = ""
    notes: list[str] = field(default_factory=list)


def pause(request: HttpRequest, queues: Sequence[str], *, reason: str, lasting: timedelta | None) -> Done:
    """Pause these (valid) queues, or the fleet when there are none. Raises PidispatchError."""
    with _recorded(request, "pause", queues, reason) as (server, done):
        with switching(server, "paused", queues, lambda: queues or known_queues(server.client)):
            # A pause of the fleet holds every queue, found or not: none is looked up before it.
            known = read_queues(server.client) if queues else None
            done.before = _shown(switches.read(server.client, queues))
            flag = switches.pause(
                server.client,
                tuple(queues) or (keys.FLEET,),
                by=by(request),
                reason=one_line(reason),
                lasting=lasting,
            )
        done.after = dict.fromkeys(queues or (keys.FLEET,), _flag(flag))
        until = "until resumed" if flag.until_ms is None else f"until {stamp(flag.until_ms)}"
        found = known or _found(server)
        if found is None:
            done.said = f"Paused {FLEET}, {until}."
            done.notes.append("Valkey did not tell which queues there are; the pause holds all of them.")
            return done
        what = counted(queues) if queues else f"{FLEET} ({counted(found.names)})"
        done.said = f"Paused {what}, {until}."
        done.notes += [f"{one} was not known here before." for one in queues if one not in found.names]
        if not queues and (gap := missing(found)):
            done.notes.append(f"{gap} The pause holds those as well.")
    return done


def resume_all(request: HttpRequest, *, reason: str) -> Done:
    """End every pause and every request of the fleet's to stop; no drain. Raises PidispatchError."""
    with _recorded(request, "resume", (), reason) as (server, done):
        with switching(server, "resumed", (), lambda: known_queues(server.client)):
            found = read_queues(server.client)
            done.before = _shown(switches.read(server.client, found.names))
            scopes = switches.resume_all(server.client, queues=found.names, hosts=found.hosts)
        # The list of known queues is anybody's to write: what is no queue of ours is not shown.
        ended = [scope for scope in scopes if scope == keys.FLEET or names.is_queue(scope)]
        done.after = {"ended": ended}
        queues = [scope for scope in ended if scope != keys.FLEET]
        if keys.FLEET in ended:
            done.said = f"Resumed {FLEET}."
        else:
            done.said = f"Resumed {counted(queues)}." if queues else "Nothing was paused."
        if gap := missing(found):
            done.notes.append(f"{gap} Do it again when that is mended.")
    return done


def resume(request: HttpRequest, queues: Sequence[str], *, reason: str) -> Done:
    """End the own pauses of these (valid) queues. Raises PidispatchError, also when the fleet's holds."""
    with _recorded(request, "resume", queues, reason) as (server, done):
        with switching(server, "resumed", queues, lambda: queues):
            done.before = _shown(switches.read(server.client, queues))
            ended = switches.resume(server.client, queues)
            held = switches.read(server.client, queues)
        done.after = {"ended": list(ended)}
        if held.paused_queues:
            why = "the whole fleet is paused" if held.fleet else "somebody paused them again"
            raise OperationalError(
                f"Still paused: {counted(held.paused_queues)}, because {why}. Resuming everything ends that."
            )
        idle = [queue for queue in queues if queue not in ended]
        done.said = f"Resumed {counted(ended)}." if ended else ""
        done.notes += (
            [f"{counted(idle)} had no pause of {'its' if len(idle) == 1 else 'their'} own."] if idle else []
        )
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


def _found(server: Server) -> KnownQueues | None:
    """List the queues; None where Valkey does not tell any more, which undoes nothing."""
    try:
        return read_queues(server.client)
    except RedisError:
        return None


def _shown(held: Switches) -> dict[str, Any]:
    flags = {keys.FLEET: held.fleet, **held.queues}
    return {scope: _flag(flag) for scope, flag in flags.items() if flag}


def _flag(flag: PauseFlag) -> dict[str, Any]:
    return {"by": flag.by, "reason": flag.reason, "since": flag.since_ms, "until": flag.until_ms}
