"""Django's error handlers: each answers in words, whatever the request was."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse

from pidispatch_site import error_pages


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400."""
    return error_pages.respond(request, error_pages.BAD_REQUEST)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403, with the permission that is missing."""
    return error_pages.respond(request, error_pages.forbidden(exception))


def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form without our token, or from elsewhere."""
    return error_pages.respond(request, error_pages.FORGED)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404."""
    return error_pages.respond(request, error_pages.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 where a part was away that a middleware needed; called while that is handled."""
    return error_pages.respond(request, error_pages.outage(sys.exc_info()[1]) or error_pages.BROKEN)
