"""What the page of one run shows beside its fields: its chain, what it printed, where else to look."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from pidispatch_site.errors import PidispatchError
from runs import history, raw_log, wording
from runs.models import Run
from runs.outcome import Outcome
from runs.run_list import Listed, listed
from runs.sheet import Section
from runs.walk import Facet

MOST_CHILDREN = 20
#: Who may read what jobs print, and who may start one again, as Django names it.
READ_OUTPUT = "dispatch.read_job_output"
START_AGAIN = "dispatch.operate_fleet"
# For how long after its end a local job's data are kept (`dispatch.queue.new_jobs`).
_KEPT = {
    Outcome.COMPLETED: timedelta(days=1),
    Outcome.POLICY: timedelta(days=1),
    Outcome.FAILED: timedelta(days=7),
}
# A record's instants are of its host's clock; a job is still offered that may be there.
_SLACK = timedelta(hours=1)
_LINES = {"Flow": Facet.FLOW, "Host": Facet.HOST, "Kind": Facet.KIND, "Reason": Facet.REASON}


@dataclass(frozen=True, slots=True)
class Chain:
    """The job that started this one, as far as its run is known, and those that this one started."""

    parent: Listed | None
    children: Sequence[Listed]
    more: bool

    def __bool__(self) -> bool:
        return bool(self.parent or self.children)


@dataclass(frozen=True, slots=True)
class Printed:
    """The end of what the job printed; or `absence`, which says why there is none here."""

    text: str = ""
    about: str = ""
    absence: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A line of a section, with the list of runs that share its value."""

    name: str
    value: str
    note: str
    url: str | None


def chain(run: Run) -> Chain:
    """Find the runs before and behind this one; two statements."""
    parents = Run.objects.only(*history.LISTED).filter(pk=run.parent_job_id)
    parent = parents.first() if run.parent_job_id else None
    # A record without an id has no children: those without a parent would be them.
    children = history.children(run.job_id, size=MOST_CHILDREN + 1) if run.job_id else []
    return Chain(
        parent=listed(parent) if parent else None,
        children=[listed(child) for child in children[:MOST_CHILDREN]],
        more=len(children) > MOST_CHILDREN,
    )


def linked(sections: Sequence[Section], run: Run, found: Chain) -> list[tuple[str, list[Field]]]:
    """Lay out the sections, with ways to the parent and to runs of the same flow, model, host, kind."""
    lists = {name: _list_of(facet, getattr(run, facet.value)) for name, facet in _LINES.items()}
    lists["Model"] = _list_of(Facet.MODEL, run.model)
    lists["Parent job"] = found.parent.url if found.parent else None
    return [
        (section.title, [Field(one.name, one.value, one.note, lists.get(one.name)) for one in section.lines])
        for section in sections
    ]


def printed(run: Run) -> Printed:
    """Read the end of what the job printed, as far as this host kept it."""
    folder = logs_folder()
    if folder is None:
        return Printed(absence="This host's configuration does not load, so that its logs cannot be found.")
    try:
        found = raw_log.tail(folder, run.job_id)
    except raw_log.LogReadError as error:
        return Printed(absence=f"The log cannot be read: {error}.")
    if found is None:
        return Printed(absence=_absence(run))
    if not found.text:
        return Printed(absence="It has printed nothing.")
    about = "all of it"
    if found.is_cut:
        about = f"the last {raw_log.TAIL_BYTES // 1024} KiB of {found.size:,} bytes"
    return Printed(found.text, about)


def logs_folder() -> Path | None:
    """Give the folder of this host's logs; None where the configuration does not load."""
    try:
        return Path(settings.PIDISPATCH.logs_dir)
    except PidispatchError:
        return None


def logs_command(run: Run) -> str:
    """Write the command that shows the whole log on its host."""
    return f"manage.py logs {shlex.quote(run.job_id)}"


def again_url(run: Run) -> str | None:
    """Give the address to post a local job's id to; None for another kind, or where nothing starts jobs."""
    if run.kind != "local" or not run.job_id:
        return None
    try:
        return reverse("admin:console_rerun")
    except NoReverseMatch:
        return None


def again_gone(run: Run, now: datetime) -> str:
    """Say that the job's data are gone by now; blank where they may be there, or it is tried again."""
    kept = _KEPT.get(Outcome(run.outcome)) if run.outcome in set(Outcome) else None
    if not run.final or kept is None or run.ended_at is None:
        return ""
    if now - run.ended_at <= kept + _SLACK:
        return ""
    return f"It cannot be run again from here. {wording.data_gone(run.job_id)}"


def _absence(run: Run) -> str:
    where = f"It ran on {run.host}. " if run.host else ""
    return (
        f"This host keeps no output of it. {where}A host keeps output while PI_CAPTURE_JOB_LOGS=1, until it"
        " is reaped by age; nothing is printed where no container ran."
    )


def _list_of(facet: Facet, value: str | None) -> str | None:
    if not value:
        return None
    given: Mapping[str, str] = {facet.value: value}
    return f"{reverse('admin:runs_run_changelist')}?{urlencode(given)}"
