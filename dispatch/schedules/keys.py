"""The names of the schedules' keys in Valkey (contracts 2). A table is what one queue has of them.

Those of a table have no TTL: their members leave with their schedule, by reconcile.
"""

from __future__ import annotations

from datetime import timedelta

from dispatch.ids import rq_id

PREFIX = "sched:"
# Longer than any host is away that is not set up anew.
OCCURRED_TTL = timedelta(days=400)
STALLS_TTL = timedelta(hours=24)


def definitions(queue: str) -> str:
    """Name the hash of schedule id to canonical definition."""
    return f"{PREFIX}{queue}:def"


def upcoming(queue: str) -> str:
    """Name the sorted set of schedule ids by their next instant, in ms."""
    return f"{PREFIX}{queue}:next"


def since(queue: str) -> str:
    """Name the hash of schedule id to when it was put in, or its pattern or zone was changed, in ms."""
    return f"{PREFIX}{queue}:since"


def torn(queue: str) -> str:
    """Name the hash of schedule id to what the stall guard tore down (`notes.Torn`)."""
    return f"{PREFIX}{queue}:torn"


def fired(queue: str) -> str:
    """Name the hash of schedule id to the last instant that the table acted on (`notes.Acted`)."""
    return f"{PREFIX}{queue}:fired"


def occurred(schedule_id: str) -> str:
    """Name the text `from-to` (ms): instants between them are dealt with in the whole fleet. `OCCURRED_TTL`.

    After gaps `from-to,from-to,...`, eight at most. It outlives the ids of their jobs. ValueError for what is
    no id.
    """
    return f"{PREFIX}occurred:{rq_id(schedule_id)}"


def stalls(schedule_id: str) -> str:
    """Name the counter of a schedule's stalls; `STALLS_TTL` after the last one."""
    return f"pi-dispatch:sched-stalls:{schedule_id}"
