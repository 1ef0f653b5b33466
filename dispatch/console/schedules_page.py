"""What the page of schedules shows: `manage.py triggers`, laid out for a browser.

Folders, files and commands are the operators' own: they stand only on the page of somebody who may change
them (`is_editor`, D17).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.admin.utils import quote
from django.urls import reverse

from dispatch.console.findings import Mark
from dispatch.console.instants import ahead, stamp
from dispatch.console.schedule_facts import LastRun, Line, Overview
from dispatch.console.schedules_lines import last, where
from dispatch.console.schedules_notes import besides_adoption, headline
from dispatch.console.trigger_words import matches, matches_kind, once, slot
from dispatch.console.triggers_file import TriggersFile
from dispatch.schedules.missed import Standing
from dispatch.triggers.entries import Run, Trigger

# A page that a browser lays out at once.
MOST_SHOWN = 500
_GRAVEST_FIRST = (Mark.FAILED, Mark.WARNING, Mark.OK)


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule as a line of the page; `tone` is good, calm, warn or bad.

    `words` go on after the token of its state. `index` is its place in the file, None where it is not in it.
    """

    line: Line
    tone: str
    words: str
    what: str
    where: str
    upcoming: str
    ahead: str
    last: str
    last_url: str | None
    index: int | None
    is_torn: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for a forge as a line of the page."""

    index: int
    matches: str
    slot: str
    once: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The page: its first sentence, what keeps from it, the first of the schedules and how many more."""

    head: str
    problems: tuple[str, ...]
    rows: tuple[Row, ...]
    more: int
    rules: tuple[Rule, ...]
    trouble: str
    file: str


def listed(overview: Overview, search: str, *, is_editor: bool) -> Listed:
    """Lay it out; `search` is the beginning of the ids that are shown. First come those to look after."""
    found = [line for line in overview.lines if line.id.startswith(search)]
    found.sort(key=lambda line: _GRAVEST_FIRST.index(line.mark))
    file = overview.file
    return Listed(
        head=headline(overview),
        problems=(*_problems(file, is_editor=is_editor), *besides_adoption(overview)),
        rows=tuple(_row(line, overview.now_ms, is_editor=is_editor) for line in found[:MOST_SHOWN]),
        more=max(0, len(found) - MOST_SHOWN),
        rules=tuple(
            _rule(one, overview.ran_by.get(one.index), is_editor=is_editor) for one in overview.rules
        ),
        trouble=file.trouble,
        file=str(file.path) if file.path and is_editor else "",
    )


def _problems(file: TriggersFile, *, is_editor: bool) -> tuple[str, ...]:
    found = (*file.problems, *file.unservable)
    if found and not is_editor:
        # They quote what stands in it.
        return (f"The triggers file of this host {file.trouble}. Who may change schedules is told why here.",)
    return found


def _row(line: Line, now_ms: int, *, is_editor: bool) -> Row:
    run = line.authored.run if line.authored else None
    following = line.upcoming[0] if line.upcoming else None
    return Row(
        line=line,
        tone=_tone(line),
        words=line.words.removeprefix(line.state).lstrip(",: "),
        what=_what(run, is_editor=is_editor) if run else "",
        where=where(line),
        upcoming=stamp(following) if following is not None else "",
        ahead=ahead(following, now_ms) if following is not None else "",
        last=last(line.last, now_ms),
        last_url=_url(line.last),
        index=line.authored.index if line.authored else None,
        is_torn=any(one.torn for one in line.installed),
    )


def _what(run: Run, *, is_editor: bool) -> str:
    shown: Callable[[Run], str] = slot if is_editor or not run.command else lambda _: "a command"
    return f"{shown(run)} in {run.folder}" if is_editor and run.folder else shown(run)


def _tone(line: Line) -> str:
    if line.is_alarm:
        return "bad" if line.mark is Mark.FAILED else "warn"
    return "good" if line.state in {"ok", Standing.RUNNING} else "calm"


def _url(run: LastRun | None) -> str | None:
    return reverse("admin:runs_run_change", args=[quote(run.job_id)]) if run and run.outcome else None


def _rule(trigger: Trigger, ran_by: str | None, *, is_editor: bool) -> Rule:
    told = matches if is_editor else matches_kind
    return Rule(
        index=trigger.index,
        matches=f"{trigger.run.kind.value} {told(trigger.on)}",
        slot=_what(trigger.run, is_editor=is_editor),
        once=once(trigger.on, ran_by=ran_by),
    )
