"""What holds for every answer of the web process, beside Django's own middleware."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from pidispatch_site import error_pages, log

_FEATURES = (
    *("accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "fullscreen"),
    *("geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment", "usb"),
)
_HEADERS = {
    # What no page of ours uses, nothing that is put into one may use either.
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _FEATURES),
    "Cross-Origin-Resource-Policy": "same-origin",
    # The address of a page may name a job; a search engine has no business here.
    "X-Robots-Tag": "noindex, nofollow",
}


class Headers:
    """Adds what Django has no setting for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with the headers."""
        response = self._get_response(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response


class Outages:
    """Answers 503 in words where a view could not use the database or the configuration."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer for a part that is away; a mistake of ours goes on to Django, which logs it."""
        answer = error_pages.outage(exception)
        if answer is None:
            return None
        log.event("page_unavailable", code=answer.code, error=type(exception).__name__)
        return error_pages.respond(request, answer)
