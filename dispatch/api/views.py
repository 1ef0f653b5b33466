"""The read API: what the commands show with --json, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from dispatch.api import asked, queue_page, runs_page
from dispatch.api.access import RefusedError, answers
from dispatch.console import fleet, fleet_data
from dispatch.console.status import read_status
from dispatch.pages.access import Access
from dispatch.pages.sight import Unseen, sight
from pidispatch_site.error_pages import NOT_FOUND, respond
from runs import fleet_notice

if TYPE_CHECKING:
    import redis

T = TypeVar("T")
_VIEW_RUNS = "runs.view_run"


def nothing(request: HttpRequest) -> HttpResponse:
    """Answer 404 for every other address below /api/."""
    return respond(request, NOT_FOUND)


@answers(Access.VIEW)
def status(request: HttpRequest) -> HttpResponse:
    """Answer what `status` prints."""
    asked.only(request.GET, ())
    return JsonResponse(_seen(read_status))


@answers(Access.VIEW)
def fleet_(request: HttpRequest) -> HttpResponse:
    """Answer what `fleet --json` prints."""
    asked.only(request.GET, ())
    return JsonResponse(_seen(lambda client: fleet_data.as_data(fleet.read(client))))


@answers(Access.VIEW)
def queue(request: HttpRequest) -> HttpResponse:
    """Answer what `queue [QUEUE…] --json` prints; of one queue page by page (`next`)."""
    wanted = queue_page.asked_of(request.GET)
    return JsonResponse(_seen(lambda client: queue_page.read(client, wanted)))


@answers(_VIEW_RUNS)
def runs(request: HttpRequest) -> HttpResponse:
    """Answer a page of the run list; `notice` says what this host's table lacks of the fleet's history."""
    query = runs_page.query_of(request.GET, datetime.now(UTC))
    limit = asked.limit(request.GET, default=runs_page.DEFAULT_LIMIT, most=runs_page.MOST)
    return JsonResponse({**runs_page.read(query, limit=limit), "notice": fleet_notice.viewed() or None})


def _seen(ask: Callable[[redis.Redis], T]) -> T:
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        answer = seen.read(ask)
    if isinstance(answer, Unseen):
        # Why may name a file of this machine; that is for pages and commands, not for other programs.
        raise RefusedError(
            503,
            "valkey-unavailable",
            "Valkey cannot be read: it is away, too slow, or refuses. `manage.py doctor` says why.",
            Retry_After="10",
        )
    return answer
