"""The admin site with the console's pages and its navigation, beside what is registered with Django's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django_htmx.http import HttpResponseClientRefresh

from dispatch.pages.access import Access
from dispatch.pages.frame import render


@dataclass(frozen=True, slots=True)
class _Place:
    """An entry of the navigation; `needs` are permissions of which one is enough."""

    label: str
    name: str
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as a page shows it."""

    label: str
    url: str
    is_here: bool


_PLACES = (
    _Place("Overview", "index", (Access.VIEW,)),
    _Place("Fleet", "console_fleet", (Access.VIEW,)),
    _Place("Queue", "console_queue", (Access.VIEW,)),
    _Place("Runs", "runs_run_changelist", ("runs.view_run",)),
    _Place("Schedules", "dispatch_schedule_changelist", ("dispatch.view_schedule",)),
    _Place("Insights", "console_insights", (Access.VIEW,)),
    _Place("Settings", "console_settings", (Access.VIEW,)),
    _Place("Kill switch", "console_switch", (Access.VIEW,)),
    _Place("Log", "console_log", (Access.VIEW,)),
    _Place("Users", "auth_user_changelist", ("auth.view_user", "auth.change_user")),
)


class ConsoleSite(admin.AdminSite):
    """Django's admin, with the overview as its first page."""

    site_header = "pi-dispatch"
    site_title = "pi-dispatch"
    enable_nav_sidebar = False
    # The site is the console.
    site_url = None

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Serve the console beside what is registered."""
        # Only here: a command that reads the settings does without the pages.
        from dispatch.pages.routes import ROUTES

        own = [path(route, self.admin_view(view), name=name) for route, name, view in ROUTES]
        # Nothing here is viewed on another site, and of what has no table that would be an outage.
        djangos = [one for one in super().get_urls() if getattr(one, "name", None) != "view_on_site"]
        return [*own, *djangos]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Show the overview; to those who may not see it Django's own list of what they may, or words."""
        if not request.user.has_perm(Access.VIEW):
            if not self.get_app_list(request):
                return render(request, "no_group.html", "You are logged in, but in no group")
            return super().index(request, extra_context)
        from dispatch.pages import overview

        return cast(TemplateResponse, overview.show(request))

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the navigation to what Django gives every page."""
        return {**super().each_context(request), "console_places": self._places(request)}

    def admin_view(
        self,
        view: Callable[..., HttpResponseBase],
        cacheable: bool = False,  # noqa: FBT001, FBT002 - as Django has it
    ) -> Any:
        """Have a part of a page that may no longer be seen fetch the whole page, which leads to the login."""
        guarded = super().admin_view(view, cacheable)

        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            is_part = getattr(request, "htmx", False)
            if is_part and not self.has_permission(request):
                return HttpResponseClientRefresh()
            return guarded(request, *args, **kwargs)

        return answer

    def _places(self, request: HttpRequest) -> list[Entry]:
        if not self.has_permission(request):
            return []
        user = request.user
        first = reverse("admin:index")
        entries = []
        for place in _PLACES:
            if any(user.has_perm(need) for need in place.needs):
                url = reverse(f"admin:{place.name}")
                here = request.path == url if url == first else request.path.startswith(url)
                entries.append(Entry(place.label, url, here))
        return entries
