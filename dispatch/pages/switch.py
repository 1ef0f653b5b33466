"""The page of the kill switch: how it stands, what it holds, what runs now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dispatch.console import fleet, running
from dispatch.console.fleet_facts import FleetFacts
from dispatch.pages.access import Access, page
from dispatch.pages.frame import fragment, render
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.switch_view import SwitchView, view
from dispatch.pages.veil import veiled
from hosts import switches
from hosts.switches import PauseFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at the switch; `seen` is None where the server shows nothing, `unseen` says why.

    `drain`: what drains the one host that was asked for.
    """

    facts: FleetFacts | None
    seen: SwitchView | None
    unseen: str = ""
    drain: PauseFlag | None = None


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the page."""
    return render(request, "switch.html", "Kill switch", {"look": look()})


@page(Access.VIEW)
def state(request: HttpRequest) -> HttpResponseBase:
    """Show the part of the page that changes."""
    return fragment(request, "switch_state.html", {"look": look()})


def look(queues: Sequence[str] = (), *, host: str | None = None) -> Look:
    """Read the switch, these queues or all, and what runs on this host or on all, within a page's time."""
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        facts = seen.read(fleet.read)
        if isinstance(facts, Unseen):
            return Look(facts=None, seen=None, unseen=veiled(facts.why, settings.PIDISPATCH_ENVIRONMENT))
        found = seen.read(lambda client: running.read(client, facts))
        drained = seen.read(lambda client: switches.drains(client, [host] if host else []))
    runs = None if isinstance(found, Unseen) else found.of(host)
    unseen = veiled(seen.fault, settings.PIDISPATCH_ENVIRONMENT)
    drain = None if isinstance(drained, Unseen) else drained.get(host or "")
    return Look(facts=facts, seen=view(facts, runs, queues=queues), unseen=unseen, drain=drain)
