"""The log of actions: who did what through the console and why, and what goes on in the background."""

from __future__ import annotations

import json
from functools import partial

from django.conf import settings
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import F, Q
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
_OURS = Q(app_label=Fleet._meta.app_label, model=Fleet._meta.model_name)
# Who may log in, and what each may do, is part of who did what.
_ACCOUNTS = Q(app_label="auth", model__in=("user", "group"))
_VERBS = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted"}


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
    """Read a page of entries and one more, the newest first.

    Nearly all are of these kinds. As a sum the kind is no column with an index, along which a database would
    read and sort the whole log: so it walks back from the newest until the page is full.
    """
    kinds = ContentType.objects.filter(_OURS | _ACCOUNTS).values_list("pk", flat=True)
    entries = LogEntry.objects.alias(kind=F("content_type_id") + 0).filter(kind__in=[*kinds])
    entries = entries.select_related("user", "content_type")
    if older_than is not None:
        entries = entries.filter(pk__lt=older_than)
    veil = partial(veiled, environment=settings.PIDISPATCH_ENVIRONMENT)
    return [
        line(
            entry.pk,
            entry.action_time,
            entry.user.get_username(),
            entry.object_repr,
            _message(entry),
            may_configure=may_configure,
            veil=veil,
        )
        for entry in entries.order_by("-pk")[: _AT_ONCE + 1]
    ]


def _message(entry: LogEntry) -> str:
    """Read an entry's message; of Django's own, which names fields and no values, make one like ours."""
    kind, given = entry.content_type, entry.change_message
    if kind is None or kind.app_label == Fleet._meta.app_label or given.startswith("{"):
        return given
    action = f"{kind.model}-{_VERBS.get(entry.action_flag, 'touched')}"
    changed = entry.get_change_message() if entry.action_flag == CHANGE else None
    return json.dumps({"action": action, "after": changed})
