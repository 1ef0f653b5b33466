"""What the page of schedules shows: `manage.py triggers`, laid out for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.admin.utils import quote
from django.urls import reverse

from dispatch.console import triggers_file
from dispatch.console.instants import ahead, stamp
from dispatch.console.schedule_facts import LastRun, Line, Overview
from dispatch.console.schedule_runs import last_runs
from dispatch.console.schedules_lines import last, where
from dispatch.console.schedules_notes import headline, notes
from dispatch.console.schedules_shown import looked
from dispatch.console.trigger_words import matches, once, slot
from dispatch.schedules.missed import Standing
from dispatch.triggers.entries import Trigger
from pidispatch_site.errors import PidispatchError
from runs import mirror_import

# A page that a browser lays out at once.
MOST_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule as a line of the page; `tone` is an outcome whose colour fits.

    `words` go on after the token of its state.
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


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for a forge as a line of the page."""

    index: int
    matches: str
    slot: str
    once: str


def context(search: str) -> dict[str, Any]:
    """Look at everything, for the template; what keeps from it is told on the page.

    `search` is the beginning of the ids that are shown.
    """
    told: list[str] = []
    _have_runs_fetched()
    try:
        file = triggers_file.read(settings.PIDISPATCH_ENVIRONMENT)
        overview, missing = looked(settings.PIDISPATCH_ENVIRONMENT, file, last_runs, warn=lambda _: None)
    except PidispatchError as error:
        return {"problems": [str(error)]}
    if missing:
        told.append(f"{missing} Shown is what the file says; how it stands is in Valkey.")
    told += [*file.problems, *file.unservable, *notes(overview)]
    return {"problems": told, **_listed(overview, search)}


def _have_runs_fetched() -> None:
    """Have the runs of other hosts brought into the table for the next look."""
    try:
        importing = mirror_import.of_process(settings.PIDISPATCH)
    except PidispatchError:
        # A configuration that does not load is told by the worker and by every command.
        return
    if importing is not None:
        importing.page_viewed()


def _listed(overview: Overview, search: str) -> dict[str, Any]:
    found = [line for line in overview.lines if line.id.startswith(search)]
    found.sort(key=lambda line: not line.is_alarm)
    return {
        "rows": [_row(line, overview.now_ms) for line in found[:MOST_SHOWN]],
        "more": len(found) - MOST_SHOWN if len(found) > MOST_SHOWN else 0,
        "head": headline(overview),
        "rules": [_rule(one, overview.ran_by.get(one.index)) for one in overview.rules],
        "file": overview.file.path,
        "trouble": overview.file.trouble,
    }


def _row(line: Line, now_ms: int) -> Row:
    run = line.authored.run if line.authored else None
    following = line.upcoming[0] if line.upcoming else None
    return Row(
        line=line,
        tone=_tone(line),
        words=line.words.removeprefix(line.state).lstrip(",: "),
        what=f"{slot(run)} in {run.folder}" if run else "",
        where=where(line),
        upcoming=stamp(following) if following is not None else "",
        ahead=ahead(following, now_ms) if following is not None else "",
        last=last(line.last, now_ms),
        last_url=_url(line.last),
    )


def _tone(line: Line) -> str:
    if line.is_alarm:
        return "failed"
    return "completed" if line.state in {"ok", Standing.RUNNING} else "policy"


def _url(run: LastRun | None) -> str | None:
    return reverse("admin:runs_run_change", args=[quote(run.job_id)]) if run and run.outcome else None


def _rule(trigger: Trigger, ran_by: str | None) -> Rule:
    return Rule(
        index=trigger.index,
        matches=f"{trigger.run.kind.value} {matches(trigger.on)}",
        slot=slot(trigger.run),
        once=once(trigger.on, ran_by=ran_by),
    )
