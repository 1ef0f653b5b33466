"""The pages of the fleet: all hosts, and one of them; both look again every few seconds."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.admin.utils import quote
from django.db import DatabaseError
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console import fleet
from dispatch.pages.access import Access, page
from dispatch.pages.fleet_host_view import Verb, host_view
from dispatch.pages.fleet_reading import HostFacts, read_host
from dispatch.pages.fleet_verbs import Offer, offer
from dispatch.pages.fleet_view import CHOICES, LONGEST_SEARCH, Wanted, fleet_view
from dispatch.pages.frame import fragment, render
from dispatch.pages.sight import Unseen, sight
from hosts import names
from runs import history, wording
from runs.models import Run
from runs.outcome import Outcome

_LAST_RUNS = 10
_LEVELS = {Outcome.COMPLETED.value: "good", Outcome.POLICY.value: "warn", Outcome.FAILED.value: "bad"}


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show every host of the fleet."""
    return render(request, "fleet.html", "Fleet", _fleet(request))


@page(Access.VIEW)
def show_live(request: HttpRequest) -> HttpResponseBase:
    """Show the part of the page that is fetched again."""
    return fragment(request, "fleet_live.html", _fleet(request))


@page(Access.VIEW)
def show_host(request: HttpRequest, host: str) -> HttpResponseBase:
    """Show one host with its jobs, its last runs and what may be done to it."""
    context = {**_host(request, host), **_last_runs(request, host)}
    status = 404 if context.get("is_stranger") else 200
    return render(request, "fleet_host.html", f"Host {host}", context, status=status)


@page(Access.VIEW)
def show_host_live(request: HttpRequest, host: str) -> HttpResponseBase:
    """Show the part of the host's page that is fetched again."""
    return fragment(request, "fleet_host_live.html", _host(request, host))


def known_name(host: str) -> str:
    """Give the name back if it can be a worker's; Http404 for any other text of an address."""
    if not names.in_alphabet(host):
        raise Http404("There is no such host.")
    return host


def _why(seen: object) -> str:
    return seen.why if isinstance(seen, Unseen) else ""


def _fleet(request: HttpRequest) -> dict[str, Any]:
    wanted = Wanted.of(request.GET.get("q", ""), request.GET.get("show", ""))
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        facts = seen.read(fleet.read)
    asked = {name: value for name, value in (("q", wanted.search), ("show", wanted.show)) if value}
    return {
        "wanted": wanted,
        "choices": CHOICES,
        "longest_search": LONGEST_SEARCH,
        "live_url": f"{reverse('admin:console_fleet_live')}?{urlencode(asked)}",
        "unseen": _why(facts),
        "view": None if isinstance(facts, Unseen) else fleet_view(facts, wanted),
    }


def _host(request: HttpRequest, host: str) -> dict[str, Any]:
    known_name(host)
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        facts = seen.read(lambda client: read_host(client, host))
    asked = {"host": host, "offers": _offers(request, host, facts)}
    if isinstance(facts, Unseen):
        return {**asked, "unseen": _why(facts)}
    return {**asked, "is_stranger": not facts.is_known, "view": host_view(facts)}


def _offers(request: HttpRequest, host: str, facts: HostFacts | Unseen) -> list[Offer]:
    """Lead to what may be done; without a look at the server to what stops work."""
    if not request.user.has_perm(Access.OPERATE):
        return []
    if isinstance(facts, Unseen):
        return [offer(verb, host) for verb in (Verb.PAUSE, Verb.DRAIN, Verb.STOP)]
    return [offer(verb, host, is_drained=bool(facts.drain)) for verb in host_view(facts).offers]


def _last_runs(request: HttpRequest, host: str) -> dict[str, Any]:
    """List its newest runs for whoever may see runs."""
    if not request.user.has_perm("runs.view_run"):
        return {}
    more = f"{reverse('admin:runs_run_changelist')}?{urlencode({'host': host})}"
    try:
        found = history.page(history.Query(facets={history.Facet.HOST: host}), size=_LAST_RUNS).runs
    except DatabaseError:
        return {"runs_unseen": "The run table cannot be read now.", "runs_url": more}
    return {"runs": [_run_line(run) for run in found], "runs_url": more}


def _run_line(run: Run) -> dict[str, str]:
    return {
        "job_id": run.job_id,
        "outcome": wording.outcome_name(run.outcome),
        "level": _LEVELS.get(run.outcome, ""),
        "url": reverse("admin:runs_run_change", args=[quote(run.job_id)]) if run.job_id else "",
        "reason": run.reason or "",
        "flow": run.flow or "",
        "ended": wording.moment(run.ended_at),
        "took": wording.span(run.started_at, run.ended_at),
    }
