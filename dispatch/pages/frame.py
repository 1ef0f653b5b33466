"""Pages in the console's frame: the site's navigation, the title, and what the page itself has to say."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse


def render(
    request: HttpRequest,
    template: str,
    title: str,
    context: dict[str, Any] | None = None,
    *,
    status: int = 200,
) -> TemplateResponse:
    """Answer a whole page; `template` stands in `templates/console/` and extends `console/base.html`."""
    frame = {**admin.site.each_context(request), "title": title}
    return TemplateResponse(request, f"console/{template}", {**frame, **(context or {})}, status=status)


def fragment(request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
    """Answer a part of a page, which a browser fetches again every few seconds."""
    return TemplateResponse(request, f"console/{template}", context)
