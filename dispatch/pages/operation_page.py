"""The page of one background action: what it has done so far, and at the end what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dispatch.pages import operation_store, operations, switch
from dispatch.pages.access import Access, page
from dispatch.pages.frame import fragment, render
from dispatch.pages.operation_state import Progress
from dispatch.pages.operation_words import Told, told
from dispatch.pages.queue_asked import token_of
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.veil import veiled

_ROWS = 200
# What heads the column of jobs in the table of an action, and what may stand before the id there.
JOB_COLUMN, JOB = "Job", "job "
_FURTHEST_DIGITS = 7
# They pause queues or drain a host, too: with them stands how each queue is now.
_SWITCHING = ("stop", "stop-host")
_NONE = (
    "There is no such action: it began more than seven days ago, or what is kept of it was lost. The log has"
    " what was done."
)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of the table; `token` names in addresses the job that it is about, None: none."""

    text: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the table with its cells."""

    cells: tuple[_Cell, ...]
    is_good: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """An action with a page of its rows from `first` on, or why there is none to show."""

    told: Told | None
    first: int
    unseen: str = ""

    @property
    def rows(self) -> list[_Row]:
        """The rows, with ways to the jobs that they name."""
        if self.told is None:
            return []
        columns, rows = self.told.progress.columns, self.told.progress.rows
        return [_Row(tuple(_cells(columns, row.cells)), row.is_good) for row in rows]

    @property
    def last(self) -> int:
        """The number of the last row shown, counted from 1."""
        return self.first + (len(self.told.progress.rows) if self.told else 0)

    @property
    def before(self) -> int | None:
        """Where the page before begins; None on the first."""
        return max(0, self.first - _ROWS) if self.first else None

    @property
    def after(self) -> int | None:
        """Where the next page begins; None on the last."""
        return self.last if self.told and self.last < self.told.progress.row_count else None


@page(Access.VIEW)
def show(request: HttpRequest, operation_id: str) -> HttpResponseBase:
    """Show an action."""
    found = _find(request, operation_id)
    title = found.told.title if found.told else "Action"
    status = 200 if found.told or found.unseen else 404
    context = {"found": found, "operation_id": operation_id, "none": _NONE}
    if found.told and found.told.progress.kind in _SWITCHING and not found.unseen:
        context["look"] = switch.look()
    return render(request, "operation.html", title, context, status=status)


@page(Access.VIEW)
def progress(request: HttpRequest, operation_id: str) -> HttpResponseBase:
    """Show the part of the page that changes."""
    found = _find(request, operation_id)
    context = {"found": found, "operation_id": operation_id, "is_fragment": True}
    return fragment(request, "operation_progress.html", context)


def _find(request: HttpRequest, operation_id: str) -> _Found:
    given = request.GET.get("from", "")
    is_number = given.isascii() and given.isdigit() and len(given) <= _FURTHEST_DIGITS
    first = int(given) if is_number else 0
    seen = operations.here(operation_id, first=first, count=_ROWS) or _read(operation_id, first)
    if isinstance(seen, Unseen):
        return _Found(told=None, first=first, unseen=veiled(seen.why, settings.PIDISPATCH_ENVIRONMENT))
    return _Found(told=None if seen is None else told(seen), first=first)


def _cells(columns: Sequence[str], texts: Sequence[str]) -> Iterator[_Cell]:
    for place, text in enumerate(texts):
        is_job = place < len(columns) and columns[place] == JOB_COLUMN
        yield _Cell(text, token_of(text.removeprefix(JOB)) if is_job else None)


def _read(operation_id: str, first: int) -> Progress | Unseen | None:
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        return seen.read(lambda client: operation_store.read(client, operation_id, first=first, count=_ROWS))
