"""What every page of the console says of the kill switch: nothing while all queues run."""

from __future__ import annotations

from hashlib import sha256

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from dispatch.console import fleet
from dispatch.console.fleet_facts import FleetFacts
from dispatch.pages.access import Access, page
from dispatch.pages.frame import fragment
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.switch_state import SwitchState, state_of, unseen

# What the browser shows already, so that it is not read out again every few seconds.
SHOWN = "shown"


def switch_state(facts: FleetFacts | Unseen) -> SwitchState:
    """Tell how the switch stands, or that it cannot be seen."""
    if isinstance(facts, Unseen):
        return unseen(facts.why)
    return state_of(facts)


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Answer the banner, or 204 where the browser has it as it is."""
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        state = switch_state(seen.read(fleet.read))
    token = sha256(f"{state.tone}{state.head}{state.about}".encode()).hexdigest()[:16]
    if request.GET.get(SHOWN) == token:
        return HttpResponse(status=204)
    return fragment(request, "banner.html", {"state": state, "token": token})
