"""What differs between the schedules of a file and those that hosts have installed, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from dispatch.console.fleet_words import named
from dispatch.schedules.definition import Schedule

Schedules = Mapping[str, Schedule]


def differing(mine: Schedules, own: Schedules, theirs: Mapping[str, Schedules]) -> Iterator[tuple[str, str]]:
    """Tell by id what differs between the file here, the table here, and the tables of others, by host."""
    for name, schedule in mine.items():
        having = {host: table[name] for host, table in theirs.items() if name in table}
        if said := _otherwise(schedule, having):
            yield name, said
        elif name not in own and not having:
            yield name, "it stands in the file of this host only, which the others have otherwise"
        elif name in own and (parts := _parts(schedule, own[name])):
            yield name, f"the file of this host has another {', '.join(parts)} than was taken over"
    for name in sorted({*own}.union(*theirs.values()) - mine.keys()):
        where = [host for host, table in theirs.items() if name in table]
        on = f"only on {named(where)}" if where else "only in what was taken over before"
        yield name, f"it is {on}, and not in the file of this host"


def _otherwise(schedule: Schedule, having: Schedules) -> str:
    found: dict[str, list[str]] = defaultdict(list)
    for host, other in having.items():
        if parts := _parts(schedule, other):
            found[", ".join(parts)].append(host)
    return "; ".join(f"{named(hosts)} has another {parts}" for parts, hosts in found.items())


def _parts(one: Schedule, other: Schedule) -> list[str]:
    """Name what differs; folders do by host, each having its real path of it."""
    fields = [name for name in ("pattern", "zone") if getattr(one, name) != getattr(other, name)]
    keys = sorted({*one.run, *other.run} - {"folder"})
    return fields + [name for name in keys if one.run.get(name) != other.run.get(name)]
