"""What a reroute did, or would do, as lines for a person and as data for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.counts import number_of
from dispatch.console.rerouting import Stay, Staying

_INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerouted:
    """What became of one queue: per other queue the ids of the jobs that went there, and who stayed.

    `is_tried`: nothing was done. `notes` are sentences on what a person should know besides.
    """

    queue: str
    is_tried: bool
    moved: Mapping[str, tuple[str, ...]]
    stayed: tuple[Staying, ...]
    notes: tuple[str, ...] = ()

    @property
    def waiting(self) -> int:
        """How many jobs that have not started stay; one that runs is left alone in any case."""
        return sum(one.reason is not Stay.STARTED for one in self.stayed)


def lines(found: Rerouted) -> Iterator[str]:
    """Say it in lines: what moved where, then who stays, those alike together."""
    count = sum(map(len, found.moved.values()))
    done = "Would move" if found.is_tried else "Moved"
    yield f"{done} {number_of(count, 'job', 'jobs')} away from {found.queue}."
    for queue, moved in sorted(found.moved.items()):
        yield f"{_INDENT}{len(moved)} to {queue}"
    alike: dict[str, list[str]] = defaultdict(list)
    for one in found.stayed:
        alike[one.why].append(one.job_id)
    for why, job_ids in alike.items():
        yield f"{number_of(len(job_ids), 'job stays', 'jobs stay')}: {why}."
        yield from (_INDENT + one_line(job_id) for job_id in job_ids)


def as_data(found: Rerouted) -> dict[str, Any]:
    """Put it into the shape of `reroute --json`."""
    return {
        "queue": found.queue,
        "dryRun": found.is_tried,
        "moved": [{"queue": queue, "jobs": list(ids)} for queue, ids in sorted(found.moved.items())],
        "stayed": [
            {"job": one.job_id, "reason": one.reason.value, "why": one.why, "needs": list(one.needs)}
            for one in found.stayed
        ],
        "notes": list(found.notes),
    }
