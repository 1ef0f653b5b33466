"""How many slots the hosts have that take from a queue: why a job waits that nothing holds up."""

from __future__ import annotations

from dispatch.console.counts import number_of
from hosts.names import host_of_queue
from hosts.rows import HostRow, Presence, Roster, Unreachable


def taken(found: Roster | Unreachable, queue: str) -> str:
    """Say it as half a sentence, as far as the hosts that are there say it; blank: none does."""
    rows = [row for row in found.hosts if _takes(row, queue)] if isinstance(found, Roster) else []
    if not rows:
        return ""
    ready = [row for row in rows if not _why_not(row)]
    used = sum(row.slots_used or 0 for row in ready)
    total = sum(row.concurrency or 0 for row in ready)
    away = [why for row in rows if (why := _why_not(row))]
    others = "".join(f", {away.count(why)} {why}" for why in dict.fromkeys(away))
    return f"{number_of(len(rows), 'host takes', 'hosts take')} from it: {used} of {total} slots used{others}"


def _takes(row: HostRow, queue: str) -> bool:
    host = host_of_queue(queue)
    return row.presence is not Presence.GONE and (host is None or row.name == host)


def _why_not(row: HostRow) -> str:
    """Say why it takes nothing for now, its slots being out of the count; blank: it does."""
    if row.draining:
        return "drained"
    return "without its container engine" if "engine" in row.blind.split(",") else ""
