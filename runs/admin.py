"""The pages of runs, read only, for everybody who may view them: list, one run, file, raw log (E 10.6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from pidispatch_site.error_pages import NotPermittedError
from runs import (
    export,
    fleet_notice,
    history,
    list_address,
    raw_log,
    rows,
    run_list,
    run_page,
    sheet,
    wording,
)
from runs.files import stem
from runs.models import Run
from runs.timeline import timeline
from runs.walk import Query

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Run]
else:  # Django's own class takes no parameter
    _ModelAdmin = admin.ModelAdmin

_TEXT = "text/plain; charset=utf-8"


@admin.register(Run)
class RunAdmin(_ModelAdmin):
    """Pages of our own in the console's frame: Django's change list counts rows, which no history bears."""

    def get_urls(self) -> list[URLPattern]:
        """Serve them; there is nothing to add, change, delete or look back at."""

        def view(answer: Callable[..., HttpResponseBase]) -> Any:
            return self.admin_site.admin_view(never_cache(require_safe(answer)))

        return [
            path("", view(self.changelist_view), name="runs_run_changelist"),
            path("export.csv", view(self.csv_view), name="runs_run_csv"),
            path("export.json", view(self.json_view), name="runs_run_json"),
            path("<path:object_id>/log.txt", view(self.log_view), name="runs_run_log"),
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
        asked = list_address.read(request.GET, datetime.now(UTC))
        page = history.page(asked.query)
        values = history.choices(run_list.READ)
        context = {
            "title": "Runs",
            "fleet_notice": fleet_notice.viewed(),
            "asked": asked,
            "selects": run_list.selects(run_list.CHOSEN, asked, values),
            "typed": run_list.selects(run_list.TYPED, asked, values),
            "listed": [run_list.listed(run) for run in page.runs],
            "cut": history.SEARCH_LIMIT if page.cut else None,
            "looked_to": run_list.looked_to(page),
            "most_exported": export.MOST,
            **run_list.neighbours(asked, page),
        }
        return self._render(request, "change_list.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show one run, every field in words."""
        self._require_view(request)
        run, may = _run(object_id), request.user.has_perm
        chain = run_page.chain(run)
        context = {
            "title": run.job_id or "(a job without an id)",
            "run": run,
            "outcome": wording.outcome_name(run.outcome),
            "reason": wording.reason_sentence(run.reason) or wording.outcome_sentence(run.outcome),
            "figures": sheet.figures(run),
            "timeline": timeline(run),
            "sections": run_page.linked(sheet.sections(run), run, chain),
            "tables": sheet.tables(run),
            "chain": chain,
            "printed": run_page.printed(run) if may(run_page.READ_OUTPUT) else None,
            "logs_command": run_page.logs_command(run),
            "again_gone": run_page.again_gone(run, datetime.now(UTC)),
            "again_url": run_page.again_url(run) if may(run_page.START_AGAIN) else None,
            "recorded": json.dumps(rows.as_recorded(run), indent=2, ensure_ascii=False),
        }
        return self._render(request, "change_form.html", context)

    def csv_view(self, request: HttpRequest) -> HttpResponseBase:
        """Send the filtered list as CSV."""
        return self._file(request, export.as_csv, "text/csv; charset=utf-8", "csv")

    def json_view(self, request: HttpRequest) -> HttpResponseBase:
        """Send the filtered list as JSON."""
        return self._file(request, export.as_json, "application/json", "json")

    def log_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Send the raw log as plain text, to who may read what jobs print."""
        self._require_view(request)
        if not request.user.has_perm(run_page.READ_OUTPUT):
            raise NotPermittedError(run_page.READ_OUTPUT, ("admin",))
        run, folder = _run(object_id), run_page.logs_folder()
        try:
            found = raw_log.pieces(folder, run.job_id) if folder else None
        except raw_log.LogReadError as error:
            raise Http404("The log cannot be read.") from error
        if found is None:
            raise Http404("This host keeps no log of it.")
        answer = StreamingHttpResponse(found, content_type=_TEXT)
        answer["X-Content-Type-Options"] = "nosniff"
        answer["Content-Disposition"] = f'inline; filename="{stem(run.job_id)}.log"'
        return answer

    def _file(
        self, request: HttpRequest, written: Callable[[Query], Iterator[str]], kind: str, ending: str
    ) -> HttpResponseBase:
        self._require_view(request)
        now = datetime.now(UTC)
        asked = list_address.read(request.GET, now)
        if asked.problems:
            # A file that holds more than was asked for would be taken for the answer.
            return HttpResponse("\n".join(asked.problems), status=400, content_type=_TEXT)
        answer = StreamingHttpResponse(written(asked.query), content_type=kind)
        answer["X-Content-Type-Options"] = "nosniff"
        answer["Content-Disposition"] = f'attachment; filename="runs-{now:%Y%m%dT%H%M%SZ}.{ending}"'
        return answer

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise NotPermittedError("runs.view_run", ("viewer", "operator", "admin"))

    def _render(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        frame = {**self.admin_site.each_context(request), "opts": Run._meta}
        return TemplateResponse(request, f"admin/runs/run/{template}", {**frame, **context})


def _run(object_id: str) -> Run:
    run = Run.objects.filter(pk=unquote(object_id).replace("\0", "\ufffd")).first()
    if run is None:
        raise Http404("There is no such run, or it was pruned.")
    return run
