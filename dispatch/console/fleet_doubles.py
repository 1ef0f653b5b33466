"""Two machines that are one host to the fleet: by their name, or by copies of one state directory.

Told only of those that live side by side: who beat before the other started may be its predecessor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dispatch.console.findings import Finding
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.fleet_words import AREA, named
from hosts.rows import LATE_MS, HostRow, KnownHost

SHARED_NAME, SHARED_STATE = "name-shared", "state-directory-copied"


def doubles(facts: FleetFacts) -> Iterator[Finding]:
    """Find the names and the host-ids that two have; who of them notices takes no jobs."""
    fresh = tuple(one for one in facts.known.known if facts.silence_ms(one) <= LATE_MS)
    yield from _of_one_name(facts, fresh)
    yield from _of_one_host_id(facts, fresh)


def _of_one_name(facts: FleetFacts, fresh: tuple[KnownHost, ...]) -> Iterator[Finding]:
    rows = {row.name: row for row in facts.known.live}
    for name in sorted({one.name for one in fresh if _is_beside(one, rows.get(one.name))}):
        yield AREA.warning(
            SHARED_NAME,
            f"two machines work under the name {name}; the one that lost it takes no jobs",
            "Give one of them another PI_WORKER_NAME, and restart its worker.",
            hosts=(name,),
        )


def _is_beside(one: KnownHost, row: HostRow | None) -> bool:
    """Whether it beat as another host while the one that has its name now was there."""
    if row is None or row.host_id in (None, one.host_id):
        return False
    return one.beat_at_ms >= (row.started_at_ms or 0)


def _of_one_host_id(facts: FleetFacts, fresh: tuple[KnownHost, ...]) -> Iterator[Finding]:
    names: dict[str, set[str]] = defaultdict(set)
    for one in fresh:
        if one.other_boot:
            names[one.host_id].add(one.name)
    rows: dict[str, list[HostRow]] = defaultdict(list)
    for row in facts.known.live:
        rows[row.host_id or ""].append(row)
    for host_id, several in rows.items():
        if host_id and (_live_together(several) or host_id in names):
            names[host_id].update(row.name for row in several)
    for _, bearers in sorted(names.items()):
        hosts = tuple(sorted(bearers))
        yield AREA.warning(
            SHARED_STATE,
            f"two machines use copies of one state directory, as {named(hosts)}; they take no jobs",
            "Stop one of the two workers, remove the file host-id of its PI_STATE_DIR, start it again under"
            " a name of its own.",
            hosts=hosts,
        )


def _live_together(rows: list[HostRow]) -> bool:
    """Whether each beat after the last of them started."""
    started = max(row.started_at_ms or 0 for row in rows)
    return len(rows) > 1 and all((row.beat_at_ms or 0) >= started for row in rows)
