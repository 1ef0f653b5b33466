"""A reroute as its page shows it: what would move and what stays, and what came of it as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from dispatch.console import rerouted
from dispatch.console.arguments import one_line
from dispatch.console.counts import number_of
from dispatch.console.reroute import SHARED
from dispatch.console.rerouted import Rerouted
from dispatch.console.rerouting import Stay, Staying
from dispatch.pages.fleet_reading import HostFacts
from dispatch.pages.operation_state import Result, Row
from hosts.names import host_of_queue

# Ids that somebody still reads; more are counted.
_MOST_NAMED = 50
# The label of the box in `console/fleet_reroute.html`.
FOLDERS_TOO = "Jobs on folders, too"
COLUMNS = ("Job", "Queue", "What became of it")


@dataclass(frozen=True, slots=True)
class Choice:
    """A place that the jobs may go to; `value` is what `--to` takes, blank for whoever can."""

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Jobs that fare alike: how many, the first of their ids, and how many ids are left out."""

    title: str
    job_ids: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a reroute would do as it stands: `count` jobs would move; the groups of those and of who stays."""

    count: int
    moves: tuple[Group, ...]
    stays: tuple[Group, ...]
    notes: tuple[str, ...]


def choices(facts: HostFacts | None) -> tuple[Choice, ...]:
    """Offer whoever can, the shared queue, and every live host with a queue of its own."""
    live = facts.fleet.known.live if facts else ()
    others = [row for row in live if facts and row.name != facts.name and row.routes]
    return (
        Choice("", "whoever can do the job"),
        Choice(SHARED, "the shared queue only"),
        *(Choice(row.name, f"{row.name}{' (drained)' if row.draining else ''}") for row in others),
    )


def preview(found: Rerouted) -> Preview:
    """Lay out what was found without doing anything."""
    alike: dict[str, list[str]] = defaultdict(list)
    for one in found.stayed:
        alike[_why(one, found)].append(one.job_id)
    moves = sorted(found.moved.items())
    return Preview(
        count=sum(len(ids) for _, ids in moves),
        moves=tuple(_group(f"{number_of(len(ids), 'job', 'jobs')} to {to}", ids) for to, ids in moves),
        stays=tuple(
            _group(f"{number_of(len(ids), 'job stays', 'jobs stay')}: {why}", ids)
            for why, ids in alike.items()
        ),
        notes=tuple(found.notes),
    )


def _why(one: Staying, found: Rerouted) -> str:
    """Say why it stays; what would let a job on a folder go is on the page a box."""
    if one.reason is not Stay.FOLDER:
        return one.why
    host = host_of_queue(found.queue)
    return f"its folder is on {host}; with “{FOLDERS_TOO}” you say that it is the same where the job goes"


def _group(title: str, job_ids: list[str] | tuple[str, ...]) -> Group:
    shown = tuple(map(one_line, job_ids[:_MOST_NAMED]))
    return Group(title=title, job_ids=shown, more=len(job_ids) - len(shown))


def rows(found: Rerouted) -> Iterator[Row]:
    """Say of each job what became of it."""
    done = "would move" if found.is_tried else "moved"
    for queue, ids in sorted(found.moved.items()):
        yield from (Row((one_line(job_id), queue, done), is_good=True) for job_id in ids)
    for one in found.stayed:
        yield Row((one_line(one.job_id), found.queue, f"stays: {_why(one, found)}"), is_good=False)


def result(found: Rerouted) -> Result:
    """Say what came of it all; not all is good while a job that has not started stays."""
    summary = next(rerouted.lines(found))
    if found.waiting:
        summary += f" {number_of(found.waiting, 'waiting job stays', 'waiting jobs stay')}."
    return Result(summary, is_good=not found.waiting, notes=tuple(found.notes))
