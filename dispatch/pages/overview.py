"""The first page: how the fleet stands, what it costs, and what somebody should look after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from dispatch.pages import overview_reading as reading
from dispatch.pages.access import Access, page
from dispatch.pages.frame import fragment, render
from dispatch.pages.sight import Sight, sight

# What a browser fetches again by itself, each at its own pace.
_PARTS: Mapping[str, Callable[[Sight], Any]] = {
    "now": reading.read_now,
    "history": reading.read_history,
    "care": reading.read_care,
}


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show everything."""
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        context = {name: read(seen) for name, read in _PARTS.items()}
    return render(request, "overview.html", "Overview", context)


@page(Access.VIEW)
def part(request: HttpRequest, name: str) -> HttpResponseBase:
    """Answer one part of the page, as it is now."""
    if name not in _PARTS:
        raise Http404
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        return fragment(request, f"overview_{name}.html", {name: _PARTS[name](seen)})
