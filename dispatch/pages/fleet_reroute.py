"""Rerouting a host's queue: a page that shows what would move and what stays, then the doing."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console.arguments import one_line
from dispatch.console.reroute import Wish, reroute, wished
from dispatch.pages import fleet_rerouting
from dispatch.pages.access import Access, action
from dispatch.pages.fleet import known_name
from dispatch.pages.fleet_reading import HostFacts, read_host
from dispatch.pages.fleet_reroute_work import begin_reroute
from dispatch.pages.frame import render
from dispatch.pages.sight import Sight, Unseen, sight
from dispatch.pages.veil import veiled
from hosts import names
from hosts.switches import LONGEST_TEXT
from pidispatch_site.errors import PidispatchError

# Reading what more jobs are to do takes longer than a page may: those are tried in the background, too.
MOST_AT_ONCE = 1500
_TRY = "try"


@action(Access.OPERATE)
def show(request: HttpRequest, host: str) -> HttpResponseBase:
    """Show what a reroute would do; do it on POST, as a background action."""
    known_name(host)
    if request.method != "POST":
        return _ask(request, host, request.GET)
    reason = one_line(request.POST.get("reason", ""))[:LONGEST_TEXT]
    try:
        wish = _wish(host, request.POST, is_tried=_TRY in request.POST)
        begun = begin_reroute(request, wish, reason)
    except PidispatchError as error:
        return _ask(request, host, request.POST, fault=_said(str(error)))
    return HttpResponseRedirect(reverse("admin:console_operation", args=[begun]))


def _wish(host: str, given: QueryDict, *, is_tried: bool) -> Wish:
    to = given.get("to", "")[:LONGEST_TEXT]
    return wished(host, to or None, same_folders=given.get("same_folders") == "on", is_tried=is_tried)


def _ask(request: HttpRequest, host: str, given: QueryDict, fault: str = "") -> HttpResponseBase:
    context: dict[str, Any] = {
        "host": host,
        "host_url": reverse("admin:console_fleet_host", args=[host]),
        "to": given.get("to", ""),
        "same_folders": given.get("same_folders") == "on",
        "reason": given.get("reason", ""),
        "longest_reason": LONGEST_TEXT,
        "fault": fault,
        "choices": fleet_rerouting.choices(None),
    }
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        facts = seen.read(lambda client: read_host(client, host))
        if isinstance(facts, Unseen):
            context["unseen"] = _said(facts.why)
        else:
            context |= {"choices": fleet_rerouting.choices(facts), "needs_drain": facts.is_taking}
            context |= _tried(seen, facts, given)
    return render(request, "fleet_reroute.html", f"Reroute {names.host_queue(host)}", context)


def _tried(seen: Sight, facts: HostFacts, given: QueryDict) -> dict[str, Any]:
    """Find out what would be done; a refusal is a sentence, and very many jobs are only counted."""
    try:
        wish = _wish(facts.name, given, is_tried=True)
    except PidispatchError as error:
        return {"refusal": _said(str(error))}
    queue = facts.fleet.queues.get(facts.queue)
    if queue and queue.jobs > MOST_AT_ONCE:
        return {"many": queue.jobs}
    found = seen.read(lambda client: reroute(client, wish))
    if isinstance(found, Unseen):
        return {"refusal": _said(found.why)}
    return {"preview": fleet_rerouting.preview(found)}


def _said(text: str) -> str:
    return veiled(text, settings.PIDISPATCH_ENVIRONMENT)
