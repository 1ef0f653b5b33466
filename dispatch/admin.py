"""What the console has of Django's admin: accounts, and the page of schedules, which has no row there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from dispatch.models import Schedule
from dispatch.pages import users
from pidispatch_site.error_pages import NotPermittedError

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Schedule]
else:  # Django's own class takes no parameter
    _ModelAdmin = admin.ModelAdmin

users.register()

_View = Callable[[HttpRequest], HttpResponseBase]


@admin.register(Schedule)
class ScheduleAdmin(_ModelAdmin):
    """The console's page of schedules, for whoever may view them; `pages.triggers` changes the file."""

    def get_urls(self) -> list[URLPattern]:
        """Serve the list, and the part of it that a page fetches again."""
        # Only here: a command that reads the settings does without the pages.
        from dispatch.pages import schedules

        return [
            path("", self._guarded(schedules.show), name="dispatch_schedule_changelist"),
            path("live/", self._guarded(schedules.live), name="console_schedules_live"),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Answer no: the triggers file has the schedules."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        """Answer no, likewise."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        """Answer no, likewise."""
        return False

    def _guarded(self, view: _View) -> Callable[..., HttpResponseBase]:
        def answer(request: HttpRequest) -> HttpResponseBase:
            if not self.has_view_permission(request):
                raise NotPermittedError("dispatch.view_schedule", ("viewer", "operator", "admin"))
            if request.method not in {"GET", "HEAD"}:
                return HttpResponseNotAllowed(["GET", "HEAD"])
            return view(request)

        return self.admin_site.admin_view(answer)
