"""GET /metrics: the fleet for Prometheus, which shows a token as any program does."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest

from dispatch.api import asked
from dispatch.api.access import answers
from dispatch.api.families import Figures
from dispatch.api.measuring import measure
from dispatch.pages.access import Access

# The one that every version reads; what a client says it prefers is not parsed.
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@answers(Access.VIEW)
def show(request: HttpRequest) -> HttpResponse:
    """Answer every figure that can be read now, also where some cannot."""
    asked.only(request.GET, ())
    measured = measure(settings.PIDISPATCH, settings.PIDISPATCH_ENVIRONMENT)
    registry = CollectorRegistry()
    registry.register(Figures(measured))
    return HttpResponse(generate_latest(registry), content_type=_CONTENT_TYPE)
