"""The log of actions: who did what through the console and why, and what goes on in the background."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dispatch.models import Fleet
from dispatch.pages import operation_store
from dispatch.pages.access import Access, page
from dispatch.pages.frame import render
from dispatch.pages.log_lines import Line, line
from dispatch.pages.operation_words import told
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.veil import veiled

OLDER_THAN = "older_than"
_AT_ONCE = 50
_MOST_DIGITS = 18


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the newest actions, or those before an entry."""
    given = request.GET.get(OLDER_THAN, "")
    older_than = int(given) if given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS else None
    lines = _lines(older_than, may_configure=request.user.has_perm(Access.CONFIGURE))
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        found = () if older_than else seen.read(operation_store.latest)
    context = {
        "lines": lines[:_AT_ONCE],
        "older": lines[_AT_ONCE - 1].id if len(lines) > _AT_ONCE else None,
        "is_newest": older_than is None,
        "operations": [] if isinstance(found, Unseen) else [told(one) for one in found],
        "unseen": found.why if isinstance(found, Unseen) else "",
    }
    return render(request, "log.html", "Log", context)


def _lines(older_than: int | None, *, may_configure: bool) -> list[Line]:
    """Read a page of entries and one more, the newest first."""
    kind = Fleet._meta
    entries = LogEntry.objects.filter(
        content_type__app_label=kind.app_label, content_type__model=kind.model_name
    ).select_related("user")
    if older_than is not None:
        entries = entries.filter(pk__lt=older_than)
    veil = partial(veiled, environment=settings.PIDISPATCH_ENVIRONMENT)
    return [
        line(
            entry.pk,
            entry.action_time,
            entry.user.get_username(),
            entry.object_repr,
            entry.change_message,
            may_configure=may_configure,
            veil=veil,
        )
        for entry in entries.order_by("-pk")[: _AT_ONCE + 1]
    ]
