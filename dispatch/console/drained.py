"""What `drain` and `undrain` say: what holds from now on, and how the host stands that it is about.

`on` is what a sentence says of the server, such as ` on URL`; blank where everybody knows which it is.
"""

from __future__ import annotations

from dispatch.console.counts import number_of
from dispatch.console.instants import span, stamp
from dispatch.console.pause_shown import ended_by
from hosts import names
from hosts.keys import FLEET
from hosts.rows import HostRow, Presence, Roster, Unreachable
from hosts.switches import PauseFlag, Switches, Undrained


def drained(host: str, flag: PauseFlag, roster: Roster | Unreachable, *, on: str = "") -> list[str]:
    """Say what the drain does; the lines after the first are what a person should know besides."""
    until = f"`manage.py undrain {host}`" if flag.until_ms is None else stamp(flag.until_ms)
    said = f"{host} takes no new job{on}, until {until}."
    row = _row(host, roster)
    if row is None or row.presence is not Presence.ALIVE:
        return [said, _absent(host, roster)]
    if row.slots_used:
        goes_on = number_of(row.slots_used, "job that it has goes", "jobs that it has go")
        said += f" {goes_on} on to the end."
    if not row.routes:
        return [said]
    queue = names.host_queue(host)
    return [
        said,
        f"Jobs of {queue} wait for it; `manage.py reroute {host}` gives others what they can do.",
    ]


def _absent(host: str, roster: Roster | Unreachable) -> str:
    if isinstance(roster, Unreachable):
        return f"Whether {host} is there nobody knows: the registry cannot be read ({roster.reason})."
    row = _row(host, roster)
    beats = [one.beat_at_ms for one in roster.known if one.name == host]
    beats += [row.beat_at_ms] if row and row.beat_at_ms is not None else []
    if not beats:
        return f"No worker named {host} was ever seen here: is the name right?"
    silent = span(roster.now_ms - max(beats))
    return f"{host} is not there, its last beat was {silent} ago; when it comes back it takes no job."


def undrained(host: str, held: Switches, ended: Undrained, *, on: str = "") -> list[str]:
    """Say what ended, and what still keeps the host from taking jobs."""
    said = f"{host} takes jobs again{on}." if ended.was_drained else f"{host} was not drained{on}."
    if ended.took_back:
        said += " The request to stop that came with its drain is taken back."
    notes = []
    if held.fleet is not None:
        notes.append(f"The whole fleet is paused all the same; {ended_by(FLEET)} ends that.")
    if ended.is_asked_to_stop:
        notes.append(
            f"The fleet's request to stop stands for {host}: it stops what it had begun before that."
            f" {ended_by(FLEET)} takes it back."
        )
    return [said, *notes]


def _row(host: str, roster: Roster | Unreachable) -> HostRow | None:
    if isinstance(roster, Unreachable):
        return None
    return next((row for row in roster.hosts if row.name == host), None)
