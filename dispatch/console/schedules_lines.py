"""The answer of `triggers` as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from dispatch.console.findings_shown import Marks
from dispatch.console.instants import ahead, span, stamp
from dispatch.console.schedule_facts import Installed, LastRun, Line, Overview
from dispatch.console.schedule_states import NOT_ASKED
from dispatch.console.schedules_notes import headline
from dispatch.console.trigger_words import matches, once, short, slot
from dispatch.console.triggers_file import VARIABLE
from dispatch.schedules.missed import Standing
from dispatch.triggers.entries import Trigger
from hosts import names
from runs import wording

_INDENT = "    "


def lines(overview: Overview, *, marks: Marks, columns: int) -> list[str]:
    """Lay the list out in lines of about so many columns."""
    told = [*_head(overview)]
    for line in overview.lines:
        told += ["", *_schedule(line, overview, marks, columns)]
    if overview.rules:
        told += ["", "Rules for forges (this version has no receiver of deliveries yet: they start nothing):"]
        told += [
            part for one in overview.rules for part in _rule(one, overview.ran_by.get(one.index), columns)
        ]
    return told


def where(line: Line) -> str:
    """Say which hosts have it, or which queue."""
    return ", ".join(map(_place, line.installed))


def last(run: LastRun | None, now_ms: int) -> str:
    """Say how and when it ended last, after "last run"."""
    if run is None:
        return "never, as far as this host knows"
    if not run.outcome:
        return f"for {stamp(run.instant_ms)}, its record is not here"
    how = f"{wording.outcome_name(run.outcome).lower()}{f' ({short(run.reason)})' if run.reason else ''}"
    return f"{how}{_when(run, now_ms)}"


def _when(run: LastRun, now_ms: int) -> str:
    ago = (
        f" {span(now_ms - run.ended_ms)} ago" if run.ended_ms is not None else f" for {stamp(run.instant_ms)}"
    )
    hand = ", started by hand" if run.by_hand else ""
    return f"{ago}{f' on {short(run.host)}' if run.host else ''}{hand}"


def _head(overview: Overview) -> Iterator[str]:
    yield headline(overview)
    file = overview.file
    if file.path is not None:
        yield f"File: {file.path}{f' ({file.trouble})' if file.trouble else ''}"
    elif not overview.lines:
        yield f"Nothing starts by itself: {VARIABLE} is not set, and no host has schedules."


def _schedule(line: Line, overview: Overview, marks: Marks, columns: int) -> Iterator[str]:
    mark = "-" if line.state == NOT_ASKED else marks[line.mark]
    what = _what(line)
    yield f"{mark} {line.id}: {line.pattern or 'unreadable'}{f' ({line.zone})' if line.zone else ''}{what}"
    details = [_next(line, overview), _stands(line, overview.now_ms)]
    if line.differs:
        details.append("the file of this host has it otherwise, and its worker has not taken that over")
    if line.authored is None and overview.file.triggers is not None:
        details.append("it is not in the file of this host")
    if line.remedy:
        details.append(f"fix: {line.remedy}")
    for detail in details:
        yield from wrap(detail, columns, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _stands(line: Line, now_ms: int) -> str:
    """Say how it stands and ran last, each once."""
    if line.last is None and line.verdict and line.verdict.standing is Standing.NOT_DUE:
        return line.words
    if line.last and line.state == line.last.outcome:
        return f"{line.words}; that was{_when(line.last, now_ms)}"
    return f"{line.words}; last run: {last(line.last, now_ms)}"


def _what(line: Line) -> str:
    if line.authored is None:
        return ""
    return f", {slot(line.authored.run)} in {short(line.authored.run.folder or '')}"


def _next(line: Line, overview: Overview) -> str:
    times = [f"{stamp(one)} ({ahead(one, overview.now_ms)})" for one in line.upcoming[:1]]
    times += [stamp(one) for one in line.upcoming[1:]]
    when = f"next {', '.join(times)}" if times else "starts no more" if _is_kept(line) else "starts nowhere"
    on = where(line)
    return f"{when}; on {on}" if on else when


def _is_kept(line: Line) -> bool:
    return any(one.torn is None for one in line.installed)


def _place(one: Installed) -> str:
    name = names.host_of_queue(one.queue) or one.queue
    return f"{name} (torn down)" if one.torn else name


def _rule(trigger: Trigger, ran_by: str | None, columns: int) -> Sequence[str]:
    state = once(trigger.on, ran_by=ran_by)
    text = f"{trigger.index}: {trigger.run.kind.value} {matches(trigger.on)}, {slot(trigger.run)}"
    return wrap(
        f"{text}{f'; {state}' if state else ''}",
        columns,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT * 2,
    )
