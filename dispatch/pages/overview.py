"""The first page: how the fleet stands."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dispatch.console.status import read_status
from dispatch.pages.access import Access, page
from dispatch.pages.frame import render
from dispatch.pages.sight import Unseen, sight


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the figures of `status`."""
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        status = seen.read(read_status)
    unseen = status.why if isinstance(status, Unseen) else ""
    return render(request, "overview.html", "Overview", {"status": status or {}, "unseen": unseen})
