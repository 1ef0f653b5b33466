"""What every page of the console says of the kill switch: nothing while all queues run."""

from __future__ import annotations

from hashlib import sha256

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from dispatch.console.status import read_status
from dispatch.pages.access import Access, page
from dispatch.pages.frame import fragment
from dispatch.pages.sight import Sight, Unseen, sight
from dispatch.pages.switch_state import SwitchState, state_of, unseen
from dispatch.pages.veil import veiled

# What the browser shows already, so that it is not read out again every few seconds.
SHOWN = "shown"


def switch_state(seen: Sight) -> SwitchState:
    """Read how the switch stands, or that it cannot be seen."""
    status = seen.read(read_status)
    if isinstance(status, Unseen):
        return unseen(veiled(status.why, settings.PIDISPATCH_ENVIRONMENT))
    return state_of(status)


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Answer the banner, or 204 where the browser has it as it is."""
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        state = switch_state(seen)
    token = sha256(f"{state.tone}{state.head}{state.about}".encode()).hexdigest()[:16]
    if request.GET.get(SHOWN) == token:
        return HttpResponse(status=204)
    return fragment(request, "banner.html", {"state": state, "token": token})
