"""The board of queues as the texts of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse

from dispatch.console.arguments import one_line
from dispatch.console.board import FIRST_OF_EACH, LONG_PAGE, PAGE, Board, QueueLine, SectionPage
from dispatch.console.instants import ahead, span, stamp
from dispatch.console.queue_rows import JobRow
from dispatch.console.slots import taken
from dispatch.console.waiting import sentence
from dispatch.pages.queue_asked import Asked
from dispatch.queue.selecting import Standing

TITLES: Mapping[Standing, str] = {
    Standing.RUNNING: "Running",
    Standing.WAITING: "Waiting",
    Standing.DEFERRED: "Deferred",
    Standing.HELD: "Held",
}
ABOUT: Mapping[Standing, str] = {
    Standing.RUNNING: "In a container, or in the hand of a worker. The longest first.",
    Standing.WAITING: "In the order in which each queue's workers take them.",
    Standing.DEFERRED: "Each sleeps until an instant. Of each queue the first to wake first.",
    Standing.HELD: "Each waits for a condition of its own. Of each queue the first to come first.",
}
_UNKNOWN = "—"
_LONGEST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One job as a row. `token` names it in addresses and forms, None where none can."""

    job_id: str
    token: str | None
    url: str | None
    about: str
    queue: str
    place: str
    reason: str
    sentence: str
    since: str
    until: str
    until_ahead: str
    host: str
    container: str
    attempt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A section to choose, or all of them."""

    key: str
    label: str
    count: int
    url: str
    is_here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A section with some of its jobs. `more_url` shows it alone, `pages` are those beside this one."""

    key: str
    title: str
    about: str
    total: int
    is_cut: bool
    span: str
    lines: tuple[Line, ...]
    more_url: str | None
    pages: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One queue with its figures by the titles of the sections, and what holds it up (blank: nothing).

    `holds`: that keeps jobs of it. `waits`: jobs are in its line; `slots`: of how many slots (blank:
    nobody says).
    """

    name: str
    url: str
    counts: Mapping[str, int]
    words: str
    holds: bool
    waits: bool
    slots: str


def tabs(board: Board, asked: Asked) -> list[Tab]:
    """Offer all sections together and each alone, with how many jobs stand there."""
    counts = {one: board.total(one) for one in Standing}
    chosen = asked.wanted.standing
    every = Tab(
        key="all",
        label="All",
        count=sum(counts.values()),
        url=asked.address(standing=None),
        is_here=chosen is None,
    )
    each = (
        Tab(
            key=one.value,
            label=TITLES[one],
            count=count,
            url=asked.address(standing=one),
            is_here=chosen is one,
        )
        for one, count in counts.items()
    )
    return [every, *each]


def queue_rows(board: Board, asked: Asked) -> list[QueueRow]:
    """Lay the queues out, those first that something holds up while jobs wait."""
    rows = sorted(board.lines, key=lambda line: not (line.obstacle and line.counts[Standing.WAITING]))
    return [_queue_row(line, board, asked) for line in rows]


def blocks(board: Board, asked: Asked) -> list[Block]:
    """Lay the sections out; of all together those are left out that are empty."""
    shown = [one for one in board.sections if one.total or asked.wanted.standing]
    return [_block(one, asked, board.now_ms) for one in shown]


def _queue_row(line: QueueLine, board: Board, asked: Asked) -> QueueRow:
    blocked = line.obstacle
    return QueueRow(
        name=line.name,
        url=asked.address(queue=line.name),
        counts={TITLES[one]: line.counts[one] for one in Standing},
        words=one_line(sentence(str(blocked))) if blocked else "",
        holds=any(count for one, count in line.counts.items() if one is not Standing.RUNNING),
        waits=line.counts[Standing.WAITING] > 0,
        slots=taken(board.roster, line.name),
    )


def _block(page: SectionPage, asked: Asked, now_ms: int) -> Block:
    alone = asked.wanted.standing is not None
    last = page.first + len(page.rows) - 1
    return Block(
        key=page.standing.value,
        title=TITLES[page.standing],
        about=ABOUT[page.standing],
        total=page.total,
        is_cut=page.is_cut,
        span=f"{page.first} to {last} of {page.total}" if page.rows else "",
        lines=tuple(_line(row, now_ms) for row in page.rows),
        more_url=None if alone or page.total <= FIRST_OF_EACH else asked.address(standing=page.standing),
        pages=dict(_pages(page, asked)) if alone else {},
    )


def _pages(page: SectionPage, asked: Asked) -> Iterator[tuple[str, str]]:
    here, last = asked.wanted.page, max(-(-page.total // asked.wanted.page_size), 1)
    if here > 1:
        yield "First", asked.address(page=1)
        yield "Previous", asked.address(page=min(here - 1, last))
    if here < last:
        yield "Next", asked.address(page=here + 1)
        yield "Last", asked.address(page=last)
    if asked.wanted.is_long:
        yield f"{PAGE} a page", asked.address(is_long=False)
    elif page.total > PAGE and not asked.is_live:
        yield f"{LONG_PAGE} a page", asked.address(is_long=True)


def _line(row: JobRow, now_ms: int) -> Line:
    entry, found = row.entry, row.explained
    until = found.until_ms
    return Line(
        job_id=_cut(entry.job_id),
        token=row.rq_id,
        url=reverse("admin:console_why", args=[row.rq_id]) if row.rq_id else None,
        about=_cut(" · ".join(filter(None, (row.kind, row.flow and f"flow {row.flow}", row.model)))),
        queue=entry.queue,
        place=f"#{entry.position}" if entry.position else "",
        reason=_cut(entry.cause or found.reason),
        sentence=one_line(found.sentence)[:500],
        since=_UNKNOWN if found.since_ms is None else span(now_ms - found.since_ms),
        until=_UNKNOWN if until is None else stamp(until),
        until_ahead="" if until is None else ahead(until, now_ms),
        host=_cut(found.host or _UNKNOWN),
        container=_cut(found.facts.container or ""),
        attempt=f"{min(entry.attempt + 1, entry.attempts)} of {entry.attempts}" if entry.attempt else "",
    )


def _cut(text: str) -> str:
    """Bound what a peer may have written at any length."""
    text = one_line(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def told(board: Board) -> Sequence[str]:
    """Say what of the queues could not be read."""
    notes = [
        f"{queue} is left out: a key of it cannot be read ({why})." for queue, why in board.unreadable.items()
    ]
    return [*notes, *([f"Queues may be missing: {board.gap}."] if board.gap else [])]
