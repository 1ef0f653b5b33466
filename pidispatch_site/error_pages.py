"""What the web process answers when it cannot: a page in words, or JSON where programs ask; never a detail.

Neither asks the database nor a template of the admin, which may be what is away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import InterfaceError, InternalError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils.cache import add_never_cache_headers

from pidispatch_site.errors import ConfigurationError, PidispatchError

_FOR_PROGRAMS = re.compile(r"/(?:api|metrics)(?:/|\Z)")
_RETRY_SECONDS = 10


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
    "Your account has no permission for it. Whoever looks after pi-dispatch can put it into one of the groups"
    " viewer, operator or admin. Nothing was changed.",
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


def respond(request: HttpRequest, answer: Answer) -> HttpResponse:
    """Answer a person with a page, and a program with JSON."""
    response: HttpResponse
    if _FOR_PROGRAMS.match(request.path_info):
        response = refusal(answer.status, answer.code, answer.title + ".")
    else:
        page = loader.render_to_string("pidispatch_site/error.html", {"answer": answer})
        response = HttpResponse(page, status=answer.status)
        add_never_cache_headers(response)
    if answer.status == UNAVAILABLE.status:
        response["Retry-After"] = str(_RETRY_SECONDS)
    return response


def refusal(
    status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """Answer a program: `{"error": {"status", "code", "message"}}`, not to be cached."""
    response = JsonResponse(
        {"error": {"status": status, "code": code, "message": message}}, status=status, headers=headers
    )
    add_never_cache_headers(response)
    return response
