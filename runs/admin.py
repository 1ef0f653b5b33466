"""The run list and the page of one run: read only, for everybody who may view runs (E 10.6)."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from pidispatch_site.errors import PidispatchError
from runs import history, mirror_import, rows, sheet, wording
from runs.history import Facet, Key, Page, Query
from runs.models import Run

SEARCH = "q"
OLDER_THAN = "older_than"
NEWER_THAN = "newer_than"
_FACET_ORDER = (Facet.OUTCOME, Facet.REASON, Facet.KIND, Facet.HOST)


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Run]
else:  # Django's own class takes no parameter
    _ModelAdmin = admin.ModelAdmin


@dataclass(frozen=True, slots=True)
class Choice:
    """One value that a facet offers."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Select:
    """A facet as the filter form shows it."""

    name: str
    label: str
    choices: list[Choice]


@dataclass(frozen=True, slots=True)
class Listed:
    """A run as a line of the list."""

    run: Run
    url: str | None
    about: str
    outcome: str
    ended: str
    took: str
    turns: str
    tokens: str
    cost: str


@admin.register(Run)
class RunAdmin(_ModelAdmin):
    """Two pages of our own in Django's frame: its change list counts rows, which no long history bears."""

    def get_urls(self) -> list[URLPattern]:
        """Serve the list and one run; there is nothing to add, change, delete or look back at."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name="runs_run_changelist"),
            path("<path:object_id>/", view(self.change_view), name="runs_run_change"),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Answer no: the recorder adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        """Answer no: a record says what was."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        """Answer no: retention deletes."""
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show a page of runs, newest first."""
        self._require_view(request)
        asked = _asked(request.GET)
        page = history.page(asked)
        context = {
            "title": "Runs",
            "fleet_notice": _fleet_notice(),
            "selects": [_select(facet, asked.facets.get(facet, "")) for facet in _FACET_ORDER],
            "search": asked.search,
            "listed": [_listed(run) for run in page.runs],
            "cut": history.SEARCH_LIMIT if page.cut else None,
            "filtered": bool(asked.search or asked.facets),
            **_neighbours(request.GET, page),
        }
        return self._render(request, "change_list.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show one run, every field in words."""
        self._require_view(request)
        run = Run.objects.filter(pk=unquote(object_id)).first()
        if run is None:
            raise Http404("There is no such run, or it was pruned.")
        context = {
            "title": run.job_id or "(a job without an id)",
            "run": run,
            "outcome": wording.outcome_name(run.outcome),
            "reason": wording.reason_sentence(run.reason) or wording.outcome_sentence(run.outcome),
            "figures": sheet.figures(run),
            "sections": sheet.sections(run),
            "tables": sheet.tables(run),
            "logs_command": f"manage.py logs {shlex.quote(run.job_id)}",
            "parent_url": _url(run.parent_job_id) if run.parent_job_id else None,
            "recorded": json.dumps(rows.as_recorded(run), indent=2, ensure_ascii=False),
        }
        return self._render(request, "change_form.html", context)

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _render(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        frame = {**self.admin_site.each_context(request), "opts": Run._meta}
        return TemplateResponse(request, f"admin/runs/run/{template}", {**frame, **context})


def _fleet_notice() -> str:
    """Have the fleet's news fetched for the next look, and say what this one lacks; blank when nothing."""
    try:
        importing = mirror_import.of_process(settings.PIDISPATCH)
    except PidispatchError:
        # A configuration that does not load is told by the worker and by every command.
        return ""
    if importing is None:
        return ""
    importing.page_viewed()
    return importing.notice()


def _asked(given: QueryDict) -> Query:
    """Read the page's address; what is not understood is as if it were not there."""
    text = {name: given.get(name, "").strip().replace("\0", "")[:300] for name in (SEARCH, *Facet)}
    return Query(
        search=text[SEARCH],
        facets={facet: text[facet] for facet in Facet if text[facet]},
        older_than=Key.parse(given.get(OLDER_THAN, "")),
        newer_than=Key.parse(given.get(NEWER_THAN, "")),
    )


def _select(facet: Facet, chosen: str) -> Select:
    values = (
        [outcome.value for outcome in wording.OUTCOMES] if facet is Facet.OUTCOME else history.choices(facet)
    )
    labels = {value: wording.outcome_name(value) if facet is Facet.OUTCOME else value for value in values}
    if facet is Facet.REASON:
        labels[history.NONE] = "none"
    if chosen:
        labels.setdefault(chosen, chosen)
    choices = [Choice(value, label, value == chosen) for value, label in labels.items()]
    return Select(facet.value, facet.value.capitalize(), [Choice("", "all", not chosen), *choices])


def _listed(run: Run) -> Listed:
    tokens = run.tokens if isinstance(run.tokens, dict) else {}
    return Listed(
        run=run,
        url=_url(run.job_id),
        about=_about(run),
        outcome=wording.outcome_name(run.outcome),
        ended=wording.moment(run.ended_at),
        took=wording.span(run.started_at, run.ended_at),
        turns=wording.amount(run.turns),
        tokens=wording.amount(tokens.get("total")),
        cost=wording.dollars(tokens.get("cost")),
    )


def _about(run: Run) -> str:
    return " · ".join(part for part in (run.target, run.flow, run.host and f"on {run.host}") if part)


def _url(job_id: str) -> str | None:
    # A record without an id is kept, but has no page: its address would be the list's.
    return reverse("admin:runs_run_change", args=[quote(job_id)]) if job_id else None


def _neighbours(given: QueryDict, page: Page) -> dict[str, str | None]:
    """Make the addresses of the pages beside this one, with the same filters."""
    kept = given.copy()
    for name in (OLDER_THAN, NEWER_THAN):
        kept.pop(name, None)

    def address(name: str, key: Key | None) -> str | None:
        if key is None:
            return None
        beside = kept.copy()
        beside[name] = str(key)
        return f"?{beside.urlencode()}"

    return {
        "older": address(OLDER_THAN, page.older),
        "newer": address(NEWER_THAN, page.newer),
        "newest": f"?{kept.urlencode()}",
    }
