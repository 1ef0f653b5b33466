"""The queues as a page shows them: how many jobs stand where, what holds each queue, and some of the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.console import circumstances
from dispatch.console.circumstances import Circumstances
from dispatch.console.obstacles import Obstacle, obstacle
from dispatch.console.queue_rows import JobRow, read_rows
from dispatch.console.queues import read_queues
from dispatch.queue.selecting import Selection, Standing, select
from hosts.rows import Roster, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis

#: Rows of a page of one section, of a long page of it, and of each section where all are shown.
PAGE, LONG_PAGE, FIRST_OF_EACH = 50, 1_000, 10
# More than the workers of a fleet run at once.
_MOST_RUNNING = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for: jobs of one queue (None: of all) and section, with an id that begins so.

    `page` counts from 1; `is_long`: pages of one section are long ones.
    """

    queue: str | None = None
    standing: Standing | None = None
    beginning: str = ""
    page: int = 1
    is_long: bool = False

    @property
    def page_size(self) -> int:
        """How many rows a page of one section has."""
        return LONG_PAGE if self.is_long else PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPage:
    """Some of the jobs of one section. `first` counts from 1; `total` are those that match.

    Too few are counted when `is_cut`: there are too many to look at.
    """

    standing: Standing
    first: int
    total: int
    is_cut: bool
    rows: tuple[JobRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """One queue: how many of its jobs stand where, and what keeps all of them from being taken."""

    name: str
    counts: Mapping[Standing, int]
    obstacle: Obstacle | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What was read at `now_ms` of Valkey's clock. `names` are of all queues, `lines` of those asked for.

    `unreadable` queues have a key of another type; `gap` says which source of queues could not be read.
    """

    now_ms: int
    names: tuple[str, ...]
    lines: tuple[QueueLine, ...]
    sections: tuple[SectionPage, ...]
    unreadable: Mapping[str, str]
    gap: str | None
    roster: Roster | Unreachable

    def total(self, standing: Standing) -> int:
        """Add up how many jobs of the queues stand so."""
        return sum(line.counts[standing] for line in self.lines)

    @property
    def matching(self) -> int:
        """How many jobs match in all sections that were asked for."""
        return sum(section.total for section in self.sections)


def read_board(client: redis.Redis, wanted: Wanted) -> Board:
    """Read it in a few steps, however many queues and jobs there are. Raises redis-py's errors."""
    known = read_queues(client)
    queues = (wanted.queue,) if wanted.queue else known.names
    around = circumstances.read(client, queues)
    asked = (wanted.standing,) if wanted.standing else tuple(Standing)
    read = [_section(client, queues, around, one, wanted) for one in asked]
    last = read[-1][0]
    return Board(
        now_ms=last.now_ms,
        names=known.names,
        lines=_lines(last, around),
        sections=tuple(page for _, page in read),
        unreadable=last.unreadable,
        gap=known.gap,
        roster=around.roster,
    )


def read_totals(client: redis.Redis, queue: str | None) -> Board:
    """Read the same without any job."""
    known = read_queues(client)
    queues = (queue,) if queue else known.names
    found = select(client, queues, Standing.HELD)
    around = circumstances.read(client, queues)
    return Board(
        now_ms=found.now_ms,
        names=known.names,
        lines=_lines(found, around),
        sections=(),
        unreadable=found.unreadable,
        gap=known.gap,
        roster=around.roster,
    )


def matching_ids(client: redis.Redis, wanted: Wanted, *, limit: int) -> list[bytes]:
    """List the ids, as they stand in Valkey, of the first jobs that match, whatever page was asked for."""
    queues = (wanted.queue,) if wanted.queue else read_queues(client).names
    ids: dict[bytes, None] = {}
    for one in (wanted.standing,) if wanted.standing else tuple(Standing):
        found = select(client, queues, one, beginning=wanted.beginning, limit=limit - len(ids)).found
        # It may have moved on between two looks.
        ids |= dict.fromkeys(job.raw_id for job in found)
    return list(ids)


def _section(
    client: redis.Redis,
    queues: Sequence[str],
    around: Circumstances,
    standing: Standing,
    wanted: Wanted,
) -> tuple[Selection, SectionPage]:
    size = wanted.page_size if wanted.standing else FIRST_OF_EACH
    start = (wanted.page - 1) * size if wanted.standing else 0
    if standing is Standing.RUNNING:
        # In the order of their age, which only their hashes tell.
        found = select(client, queues, standing, beginning=wanted.beginning, limit=_MOST_RUNNING)
        rows = read_rows(client, found, standing, around, start=start, limit=size)
    else:
        found = select(client, queues, standing, beginning=wanted.beginning, offset=start, limit=size)
        rows = read_rows(client, found, standing, around)
    page = SectionPage(
        standing=standing, first=start + 1, total=found.matching, is_cut=found.is_cut, rows=rows
    )
    return found, page


def _lines(found: Selection, around: Circumstances) -> tuple[QueueLine, ...]:
    return tuple(
        QueueLine(
            name=queue,
            counts=counts,
            obstacle=obstacle(around.facts(queue, now_ms=found.now_ms, beats=found.beats[queue])),
        )
        for queue, counts in found.totals.items()
    )
