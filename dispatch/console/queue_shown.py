"""The answer of `queue` as lines for a person, and as data for programs and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.instants import ahead, span
from dispatch.console.lookup import QueueView
from dispatch.console.obstacles import obstacle
from dispatch.console.standing import reason_of
from dispatch.console.waiting import sentence, wakes_ms
from dispatch.queue.entries import Entry
from dispatch.queue.listing import Section
from dispatch.queue.owner import boot_of
from dispatch.queue.states import State
from dispatch.queue.waiters import WaitReason

WIDTH = 100
_HEADINGS = ("JOB", "SINCE", "REASON", "UNTIL", "PLACE")
_GAP = "  "
_INDENT = "  "
_NOTHING = "-"
# A reason is a token; one from elsewhere may be anything.
_LONGEST_REASON = 24


def lines(views: Sequence[QueueView]) -> list[str]:
    """Lay the queues out, each with its sections, in lines of at most WIDTH; a longer id has its own."""
    return [line for view in views for line in _queue(view)]


def _queue(view: QueueView) -> Iterator[str]:
    named = {name: section for name, section in sections(view).items() if section.total}
    counts = ", ".join(f"{section.total} {name}" for name, section in named.items())
    name = view.listing.queue
    yield f"{name}: {counts}" if named else f"{name} is empty: nothing runs, waits or sleeps."
    blocked = obstacle(view.facts)
    if blocked:
        yield from wrap(one_line(sentence(str(blocked))), WIDTH)
    if named:
        yield from _table({name: (section, _rows(section, view)) for name, section in named.items()})


def _rows(section: Section, view: QueueView) -> list[tuple[str, ...]]:
    return [_row(entry, view) for entry in section.entries]


def _table(named: Mapping[str, tuple[Section, list[tuple[str, ...]]]]) -> Iterator[str]:
    """Lay out all sections of a queue in the same columns, the headings once."""
    cells = [_HEADINGS, *(row for _, rows in named.values() for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    is_narrow = len(_INDENT) + sum(widths) + len(_GAP) * (len(widths) - 1) <= WIDTH
    yield from _laid_out(_HEADINGS, widths, is_narrow=is_narrow)
    for name, (section, rows) in named.items():
        yield f"{name} ({section.total})"
        for row in rows:
            yield from _laid_out(row, widths, is_narrow=is_narrow)
        more = section.total - len(rows)
        if more > 0:
            yield f"{_INDENT}and {more} more"


def _laid_out(row: Sequence[str], widths: Sequence[int], *, is_narrow: bool) -> Iterator[str]:
    if is_narrow:
        yield _INDENT + _joined(row, widths)
    else:
        yield _INDENT + row[0]
        yield (_INDENT * 2 + _joined(row[1:], widths[1:]))[:WIDTH]


def _joined(row: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def as_data(views: Sequence[QueueView], unreadable: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Put them into the shape of `queue --json`: instants in ms; `total` counts also what is not shown.

    Queues that are `unreadable` are named with why, where there are some.
    """
    left_out = {"unreadable": dict(unreadable)} if unreadable else {}
    return {"queues": [_queue_data(view) for view in views], **left_out}


def _queue_data(view: QueueView) -> dict[str, Any]:
    blocked = obstacle(view.facts)
    return {
        "queue": view.listing.queue,
        "now": view.listing.now_ms,
        "blocked": {"reason": blocked.reason, "sentence": sentence(str(blocked)), "until": blocked.until_ms}
        if blocked
        else None,
        **{
            name: {"total": section.total, "jobs": [_job_data(entry, view) for entry in section.entries]}
            for name, section in sections(view).items()
        },
    }


def _job_data(entry: Entry, view: QueueView) -> dict[str, Any]:
    return {
        "job": entry.job_id,
        "state": entry.state.value,
        "reason": _reason(entry, view),
        "cause": entry.cause,
        "since": entry.since_ms,
        "until": _until_ms(entry, view),
        "firstQueued": entry.first_queued_ms,
        "position": entry.position,
        "host": entry.host,
        "attempt": entry.attempt,
        "attempts": entry.attempts,
        "scopeHash": entry.scope_hash,
    }


def sections(view: QueueView) -> dict[str, Section]:
    """Name the sections of a queue in the order in which they are shown."""
    listing = view.listing
    return {
        "running": listing.running,
        "waiting": listing.waiting,
        "deferred": listing.deferred,
        "held": listing.held,
    }


def _row(entry: Entry, view: QueueView) -> tuple[str, ...]:
    now_ms, until_ms = view.listing.now_ms, _until_ms(entry, view)
    place = f"#{entry.position}" if entry.position else entry.host
    return (
        one_line(entry.job_id),
        _NOTHING if entry.since_ms is None else f"{span(now_ms - entry.since_ms)} ago",
        one_line(_waits_for(entry, view))[:_LONGEST_REASON],
        _NOTHING if until_ms is None else ahead(until_ms, now_ms),
        one_line(place or _NOTHING),
    )


def _reason(entry: Entry, view: QueueView) -> str:
    return reason_of(entry, view.facts, boot=boot_of(entry.token or ""))


def _waits_for(entry: Entry, view: QueueView) -> str:
    """Name what a person should know it by: of several caps the one that is used up (`scope-cap:day`)."""
    reason = _reason(entry, view)
    return entry.cause if reason == WaitReason.CAP and entry.cause else reason


def _until_ms(entry: Entry, view: QueueView) -> int | None:
    """Tell when it wakes; of a job in line, when the pause ends that holds its queue."""
    blocked = obstacle(view.facts) if entry.state is State.QUEUED else None
    return blocked.until_ms if blocked else wakes_ms(entry, view.listing.now_ms)
