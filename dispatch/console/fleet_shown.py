"""The answer of `fleet` as lines for a person.

Two tables, one row a host in each, so that both fit a terminal: how each is doing, and what each is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from dispatch.console import findings_shown
from dispatch.console.findings_shown import Marks
from dispatch.console.fleet_facts import FleetFacts, HostLook, QueueLook
from dispatch.console.fleet_findings import warnings
from dispatch.console.fleet_words import blind_to, clipped, short_value, was_cut_off
from dispatch.console.instants import ahead, span, stamp
from dispatch.console.pause_shown import ended_by, who_and_why
from hosts.keys import FLEET
from hosts.rows import SKEW_TOLD_MS, HostRow, Presence, Unreachable

WIDEST = 100
_GAP = "  "
_NOTHING = "-"
_LONGEST_NAME = 24
# Less room than this for the last column, and it goes to a line of its own.
_LEAST_REST = 16
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class _Table:
    """Headings, which of the columns are numbers, and rows; the last column is a text that may be long."""

    headings: tuple[str, ...]
    numbers: frozenset[int]
    rows: Sequence[tuple[str, ...]]


def lines(facts: FleetFacts, *, marks: Marks, columns: int = WIDEST) -> list[str]:
    """Lay the fleet out in lines of at most so many columns (80 or more)."""
    hosts = facts.hosts
    tables = [_standing(facts, hosts), _described(hosts)]
    told = [line for line in _head(facts, hosts) for line in wrap(line, columns)]
    for table in tables:
        told += ["", *_laid_out(table, columns)] if table.rows else []
    unreadable = facts.known.unreadable
    if unreadable:
        told += ["", "cannot be read:"]
        told += [f"{_GAP}{one.shown}: {one.why}"[:columns] for one in unreadable]
    found = warnings(facts)
    return [*told, "", *findings_shown.wrapped(found, marks, columns=columns)] if found else told


def _head(facts: FleetFacts, hosts: Sequence[HostLook]) -> Iterator[str]:
    at = f"As of {stamp(facts.now_ms)}"
    if isinstance(facts.roster, Unreachable):
        yield f"{at}: which hosts there are cannot be told ({facts.roster.reason}). The queues:"
    elif not hosts:
        yield f"{at}: no host is known here. Each worker makes itself known when it starts."
    else:
        counts = Counter(host.presence for host in hosts)
        yield f"{at}: {', '.join(f'{counts[one]} {one}' for one in Presence if counts[one])}."
    if facts.pause:
        ends = f" It ends {ahead(facts.pause.until_ms, facts.now_ms)}." if facts.pause.until_ms else ""
        yield f"The whole fleet is paused{who_and_why(facts.pause)}; {ended_by(FLEET)} ends that.{ends}"


def _standing(facts: FleetFacts, hosts: Sequence[HostLook]) -> _Table:
    theirs = {host.queue.name for host in hosts if host.queue}
    others = [queue for queue in facts.queues.values() if queue.name not in theirs]
    rows = [
        (
            host.name,
            _NOTHING if host.stale_ms is None else f"{span(host.stale_ms)} ago",
            _slots(host.row),
            *_figures(host.queue),
            ", ".join(_states(host, facts)),
        )
        for host in hosts
    ]
    rows += [
        (queue.name, _NOTHING, _NOTHING, *_figures(queue), _queue_state(queue, facts)) for queue in others
    ]
    return _Table(("HOST", "BEAT", "SLOTS", "WAIT", "DEFER", "HELD", "STATE"), frozenset({2, 3, 4, 5}), rows)


def _described(hosts: Sequence[HostLook]) -> _Table:
    rows = [
        (
            row.name,
            row.version[:12] or _NOTHING,
            short_value(row.image_digest)[:12] or _NOTHING,
            row.pi_version[:10] or _NOTHING,
            row.tz[:32] or _NOTHING,
            _skew(row),
            " ".join(sorted(row.caps)) or _NOTHING,
        )
        for row in (host.row for host in hosts)
        if row
    ]
    return _Table(("HOST", "VERSION", "IMAGE", "PI", "ZONE", "SKEW", "CAPS"), frozenset({5}), rows)


def _skew(row: HostRow) -> str:
    """Tell how far its clock is ahead, in whole seconds: the way of a beat says nothing."""
    return _NOTHING if row.skew_ms is None else f"{round(row.skew_ms / 1000):+d} s"


def _slots(row: HostRow | None) -> str:
    if row is None or (row.slots_used is None and row.concurrency is None):
        return _NOTHING
    used, slots = ("?" if one is None else one for one in (row.slots_used, row.concurrency))
    return f"{used}/{slots}"


def _figures(queue: QueueLook | None) -> tuple[str, str, str]:
    if queue is None:
        return _NOTHING, _NOTHING, _NOTHING
    waiting, deferred, held = (
        "?" if one is None else str(one) for one in (queue.waiting, queue.deferred, queue.held)
    )
    return waiting, deferred, held


def _states(host: HostLook, facts: FleetFacts) -> Iterator[str]:
    row = host.row
    yield host.presence.value
    if host.draining:
        yield "drained"
    if row and blind_to(row):
        yield f"blind ({clipped(blind_to(row))})"
    if row and was_cut_off(row):
        yield "was cut off"
    if row and row.skew_ms is not None and abs(row.skew_ms) > SKEW_TOLD_MS:
        yield f"clock {row.skew_ms / 1000:+.1f} s"
    if host.name in facts.asked_to_stop:
        yield "asked to stop"
    if host.queue and host.queue.pause:
        yield f"queue paused{who_and_why(host.queue.pause)}"


def _queue_state(queue: QueueLook, facts: FleetFacts) -> str:
    what = "the queue of a host that is not there" if queue.host else "the shared queue"
    taken = "" if facts.is_taken_from(queue) else ", no worker takes from it"
    return f"{what}{taken}{f', paused{who_and_why(queue.pause)}' if queue.pause else ''}"


def _laid_out(table: _Table, columns: int) -> Iterator[str]:
    """Align all columns but the last; a long name and a long text have lines of their own."""
    cells = [row[:-1] for row in (table.headings, *table.rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    widths[0] = min(widths[0], _LONGEST_NAME)
    room = columns - sum(widths) - len(_GAP) * len(widths)
    for row in (table.headings, *table.rows):
        yield from _row(row, widths, table.numbers, room=room, columns=columns)


def _row(
    row: Sequence[str], widths: Sequence[int], numbers: frozenset[int], *, room: int, columns: int
) -> Iterator[str]:
    name, *rest, text = row
    if len(name) > widths[0]:
        yield name
        name = ""
    cells = [
        cell.rjust(width) if place in numbers else cell.ljust(width)
        for place, (cell, width) in enumerate(zip((name, *rest), widths, strict=True))
    ]
    start = _GAP.join(cells)
    if len(text) <= room:
        yield f"{start}{_GAP}{text}".rstrip()
    elif room < _LEAST_REST:
        yield start.rstrip()[:columns]
        yield from wrap(text, columns, initial_indent=_INDENT, subsequent_indent=_INDENT)
    else:
        margin = " " * (len(start) + len(_GAP))
        first, *more = wrap(text, columns, initial_indent=margin, subsequent_indent=margin)
        yield from (f"{start}{first[len(start) :]}", *more)
