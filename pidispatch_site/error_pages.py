"""What the web process answers when it cannot: a page in words, or JSON where programs ask; never a detail.

Somebody who is logged in keeps the navigation where that can be had: not when the database is away, nor after
a mistake of ours, which may lie in what the frame of a page needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils.cache import add_never_cache_headers

from pidispatch_site.errors import ConfigurationError, PidispatchError

_FOR_PROGRAMS = re.compile(r"/(?:api|metrics)(?:/|\Z)")
_RETRY_SECONDS = 10
_PLAIN = "pidispatch_site/error.html"
_IN_FRAME = "pidispatch_site/error_inside.html"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status with a token for programs, and a title and what to do for a person."""

    status: int
    code: str
    title: str
    text: str


BAD_REQUEST = Answer(
    400,
    "bad-request",
    "This request was not understood",
    "Either the address of this page is not one that pi-dispatch answers to (PI_WEB_ORIGINS names those), or"
    " what was sent makes no sense. Nothing was changed.",
)
FORBIDDEN = Answer(
    403,
    "forbidden",
    "You may not see or do this",
    "Your account has no permission for it. Ask a superuser, or somebody of the group admin, to put it into a"
    " group: viewer sees, operator also acts on hosts, queues and jobs, admin also changes schedules and"
    " settings, reads what jobs printed and manages users. Nothing was changed.",
)
FORGED = Answer(
    403,
    "forged",
    "This form was not accepted",
    "It does not come from a page that this browser got from here, or that page is too old. Open the page"
    " again and repeat what you did; cookies must be allowed. Nothing was changed.",
)
NOT_FOUND = Answer(
    404,
    "not-found",
    "There is nothing here",
    "The address is wrong, or what it names is gone: runs are pruned after some time.",
)
BROKEN = Answer(
    500,
    "broken",
    "pi-dispatch made a mistake",
    "This is a fault of the program. The web process has written it to its standard error. If you were"
    " changing something, look whether it was done before you repeat it.",
)
NO_DATABASE = Answer(
    503,
    "database-unusable",
    "The database of this host cannot be used",
    "It is away, locked, not up to date, or takes no writes. The fleet works on, and `manage.py status`,"
    " `pause` and `stop` need no database; `manage.py doctor` on this machine says more. If you were"
    " changing something, look whether it was done before you repeat it.",
)
MISCONFIGURED = Answer(
    503,
    "misconfigured",
    "The configuration of this host has a fault",
    "The web process cannot answer this page with it; `manage.py doctor` on this machine names each problem.",
)
UNAVAILABLE = Answer(
    503,
    "unavailable",
    "Something that this page needs does not answer",
    "`manage.py doctor` on this machine says what. Try again in a moment.",
)


_FRAMELESS = (NO_DATABASE, BROKEN)


def outage(error: BaseException | None) -> Answer | None:
    """Say what is away where that is why a view failed; None for a mistake of ours."""
    match error:
        # PostgreSQL's refusal to write where it may only be read is an InternalError.
        case OperationalError() | InterfaceError() | InternalError():
            return NO_DATABASE
        case ConfigurationError():
            return MISCONFIGURED
        case PidispatchError():
            return UNAVAILABLE
        case _:
            return None


class NotPermittedError(PermissionDenied):
    """A refusal that names what is needed; Django's own does not."""

    def __init__(self, permission: str, groups: Sequence[str]) -> None:
        self.permission = permission
        self.groups = tuple(groups)
        super().__init__(permission)


def forbidden(error: Exception) -> Answer:
    """Say what permission is missing, and which ready group has it, where the error knows."""
    if not isinstance(error, NotPermittedError):
        return FORBIDDEN
    groups = " or ".join(error.groups)
    return replace(
        FORBIDDEN,
        text=f"It needs the permission {error.permission}, which the group {groups} has. Ask a superuser, or"
        " somebody of the group admin, to give it to your account. Nothing was changed.",
    )


def respond(request: HttpRequest, answer: Answer) -> HttpResponse:
    """Answer a person with a page, and a program with JSON."""
    response: HttpResponse
    if _FOR_PROGRAMS.match(request.path_info):
        response = refusal(answer.status, answer.code, answer.title + ".")
    else:
        page = _inside(request, answer) or loader.render_to_string(_PLAIN, {"answer": answer})
        response = HttpResponse(page, status=answer.status)
        add_never_cache_headers(response)
    if answer.status == UNAVAILABLE.status:
        response["Retry-After"] = str(_RETRY_SECONDS)
    return response


def _inside(request: HttpRequest, answer: Answer) -> str | None:
    """Render in the console's frame, for somebody who is logged in; None where that cannot be told."""
    # A request that was refused early has no user yet.
    if answer in _FRAMELESS or not hasattr(request, "user"):
        return None
    try:
        if not admin.site.has_permission(request):
            return None
        context = {**admin.site.each_context(request), "title": answer.title, "answer": answer}
        return loader.render_to_string(_IN_FRAME, context, request)
    except (DatabaseError, PidispatchError):
        return None


def refusal(
    status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """Answer a program: `{"error": {"status", "code", "message"}}`, not to be cached."""
    response = JsonResponse(
        {"error": {"status": status, "code": code, "message": message}}, status=status, headers=headers
    )
    add_never_cache_headers(response)
    return response
