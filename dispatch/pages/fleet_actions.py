"""Draining one host and ending that: a page that shows what will be affected, and the doing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch import durations
from dispatch.console.arguments import one_line
from dispatch.pages import audit
from dispatch.pages.access import Access, View, action
from dispatch.pages.acting import acting, by
from dispatch.pages.fleet import known_name
from dispatch.pages.fleet_host_view import Verb
from dispatch.pages.fleet_jobs import job_lines
from dispatch.pages.fleet_reading import read_host
from dispatch.pages.fleet_switching import Order, Turned, drain, undrain
from dispatch.pages.fleet_verbs import LABELS, effects
from dispatch.pages.frame import render
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.veil import veiled
from hosts.switches import LONGEST_TEXT
from pidispatch_site.errors import PidispatchError


@dataclass(frozen=True, slots=True)
class Given:
    """What a person typed into the form; `fault` says what is wrong, blank for nothing.

    `is_wrong`: the fault is of `lasting`.
    """

    reason: str = ""
    lasting: str = ""
    fault: str = ""
    duration: timedelta | None = None
    is_wrong: bool = False


def given(request: HttpRequest) -> Given:
    """Read the form: a reason, and how long it shall last, blank for until somebody ends it."""
    reason = one_line(request.POST.get("reason", ""))[:LONGEST_TEXT]
    lasting = request.POST.get("lasting", "").strip()
    try:
        return Given(reason, lasting, duration=durations.parse(lasting) if lasting else None)
    except ValueError as error:
        return Given(reason, lasting[: durations.LONGEST_TEXT], str(error), is_wrong=True)


def view_of(verb: Verb) -> View:
    """Make the view of one of these actions."""

    @action(Access.OPERATE)
    def show(request: HttpRequest, host: str) -> HttpResponseBase:
        known_name(host)
        typed = given(request) if request.method == "POST" else Given()
        if request.method == "POST" and not typed.fault:
            done = _do(request, verb, host, typed)
            if isinstance(done, HttpResponseBase):
                return done
            typed = Given(typed.reason, typed.lasting, done)
        return render(request, "fleet_action.html", f"{LABELS[verb]}: {host}", _asking(verb, host, typed))

    return show


def _do(request: HttpRequest, verb: Verb, host: str, typed: Given) -> HttpResponseBase | str:
    """Do it and lead to the host's page; or say why it could not be done, or is not known to be."""
    turn = drain if verb is Verb.DRAIN else undrain
    order = Order(host=host, by=by(request), reason=typed.reason, lasting=typed.duration)
    try:
        with (
            audit.recorded(request, f"host-{verb}", host, reason=typed.reason) as doing,
            acting(settings.PIDISPATCH_ENVIRONMENT) as server,
        ):
            done = turn(server, order)
            doing.before, doing.after = done.before, done.after
    except PidispatchError as error:
        return veiled(str(error), settings.PIDISPATCH_ENVIRONMENT)
    _tell(request, done)
    return HttpResponseRedirect(reverse("admin:console_fleet_host", args=[host]))


def _tell(request: HttpRequest, done: Turned) -> None:
    messages.success(request, veiled(done.said, settings.PIDISPATCH_ENVIRONMENT))
    for note in done.notes:
        messages.warning(request, note)


def _asking(verb: Verb, host: str, typed: Given) -> dict[str, Any]:
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        facts = seen.read(lambda client: read_host(client, host))
    asking = {
        "host": host,
        "verb": LABELS[verb],
        "is_lasting": verb is Verb.DRAIN,
        "typed": typed,
        "longest_reason": LONGEST_TEXT,
        "longest_lasting": durations.LONGEST_TEXT,
        "host_url": reverse("admin:console_fleet_host", args=[host]),
    }
    if isinstance(facts, Unseen):
        return {**asking, "unseen": facts.why}
    return {
        **asking,
        "is_stranger": not facts.is_known,
        "effects": effects(verb, facts),
        "jobs": tuple(job_lines(facts)),
    }


ask_drain, ask_undrain = view_of(Verb.DRAIN), view_of(Verb.UNDRAIN)
