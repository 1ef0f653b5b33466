"""Who asks the read API, and what they may: a token or the browser's session, with Django's permissions.

Every answer is JSON, also a refusal: a program never gets a page to log in on. Nothing here lets another site
read an answer, since no header says so.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from dispatch.api import tokens
from dispatch.pages.access import SAFE
from pidispatch_site.error_pages import refusal
from pidispatch_site.lazy_settings import LOOPBACK

View = Callable[[HttpRequest], HttpResponse]
_SCHEME = "Bearer"


class RefusedError(Exception):
    """A request that is not answered; the message is for the one who wrote the program."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def answers(needs: str) -> Callable[[View], View]:
    """Let a view answer GET and HEAD of those who have the permission; a `RefusedError` becomes its answer.

    Nothing is changed by any request, so that none needs a token against forged forms.
    """

    def guarded(view: View) -> View:
        @csrf_exempt
        @never_cache
        @wraps(view)
        def answer(request: HttpRequest) -> HttpResponse:
            try:
                _judge(request, needs)
                return view(request)
            except RefusedError as refused:
                return refusal(refused.status, refused.code, refused.message, headers=refused.headers)

        return answer

    return guarded


def _judge(request: HttpRequest, needs: str) -> None:
    if request.method not in SAFE:
        raise RefusedError(405, "method-not-allowed", "Only GET and HEAD are answered.", Allow="GET, HEAD")
    _require_https(request)
    if not _asker(request).has_perm(needs):
        raise RefusedError(403, "forbidden", f"The user of this token or session lacks {needs}.")


def _require_https(request: HttpRequest) -> None:
    """Refuse what came in the clear over the network: a redirect would not take back the token it showed."""
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        host = request.get_host().rpartition(":")[0] or request.get_host()
        if host not in LOOPBACK:
            raise RefusedError(
                403, "https-required", "Ask over HTTPS, and make a new token: this one was sent in the clear."
            )


def _asker(request: HttpRequest) -> User:
    header = request.headers.get("Authorization")
    if header is None:
        user = request.user
        if isinstance(user, User) and user.is_authenticated:
            return user
        raise _unknown("Send `Authorization: Bearer TOKEN`; `manage.py apitoken create NAME` makes one.")
    scheme, _, token = header.partition(" ")
    bearer = tokens.bearer_of(token.strip(), datetime.now(UTC)) if scheme.lower() == _SCHEME.lower() else None
    if bearer is None:
        raise _unknown("This token is unknown, over or revoked, or its user is not active.")
    return bearer


def _unknown(message: str) -> RefusedError:
    return RefusedError(401, "not-authenticated", message, WWW_Authenticate=_SCHEME)
