"""The page of schedules: read only, for everybody who may view them; what `manage.py triggers` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from dispatch.models import Schedule

SEARCH = "q"

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Schedule]
else:  # Django's own class takes no parameter
    _ModelAdmin = admin.ModelAdmin


@admin.register(Schedule)
class ScheduleAdmin(_ModelAdmin):
    """One page of our own in Django's frame. There is no row to open, add, change or delete."""

    def get_urls(self) -> list[URLPattern]:
        """Serve the list."""
        view = self.admin_site.admin_view(self.changelist_view)
        return [path("", view, name="dispatch_schedule_changelist")]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Answer no: the triggers file has the schedules."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        """Answer no: `manage.py triggers` edits the file."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        """Answer no, likewise."""
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show every schedule, first those that somebody should look after."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        frame = {**self.admin_site.each_context(request), "opts": Schedule._meta, "title": "Schedules"}
        search = request.GET.get(SEARCH, "").strip()[:200]
        # Only here: the pages of runs do without the queue and its library.
        from dispatch.console import schedules_page

        context = {**frame, "search": search, **schedules_page.context(search)}
        return TemplateResponse(request, "admin/dispatch/schedule/change_list.html", context)
