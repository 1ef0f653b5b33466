"""Pause, resume and stop: a page that shows what will be affected, and the POST that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from dispatch import durations
from dispatch.console.hosts import named_host
from dispatch.console.queues import named_queues
from dispatch.pages import switch_actions
from dispatch.pages.access import Access, action
from dispatch.pages.frame import render
from dispatch.pages.switch import Look, look
from dispatch.pages.switch_actions import Done
from dispatch.pages.switch_confirmations import (
    Confirmation,
    confirm_pause,
    confirm_resume,
    confirm_resume_fleet,
    confirm_stop,
)
from dispatch.pages.switch_stopping import begin_stop
from dispatch.pages.switch_view import pauses
from dispatch.pages.veil import veiled
from pidispatch_site.errors import ConfigurationError, PidispatchError

_SECONDS = 30
_LONGEST_SECONDS = 3600
# More than a fleet has.
_MOST_QUEUES = 2000


@dataclass(frozen=True, slots=True)
class Problem:
    """Why it was not done, and the name of the field that is wrong; blank for none."""

    text: str = ""
    field: str = ""


class FieldError(ConfigurationError):
    """What was typed into one field, by its name, is not allowed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@action(Access.OPERATE)
def pause(request: HttpRequest) -> HttpResponseBase:
    """Pause the fleet, or the queues that the request names."""

    def do(queues: Sequence[str]) -> Done:
        lasting = _lasting(request.POST.get("for", ""))
        return switch_actions.pause(request, queues, reason=request.POST.get("reason", ""), lasting=lasting)

    return _switch(request, confirm_pause, do)


@action(Access.OPERATE)
def resume(request: HttpRequest) -> HttpResponseBase:
    """Resume everything, or the queues that the request names."""

    def do(queues: Sequence[str]) -> Done:
        reason = request.POST.get("reason", "")
        if queues:
            return switch_actions.resume(request, queues, reason=reason)
        return switch_actions.resume_all(request, reason=reason)

    return _switch(request, confirm_resume, do)


@action(Access.OPERATE)
def resume_fleet(request: HttpRequest) -> HttpResponseBase:
    """End the fleet's pause with its requests to stop, and leave pauses of single queues."""

    def do(_: Sequence[str]) -> Done:
        return switch_actions.resume_fleet(request, reason=request.POST.get("reason", ""))

    return _switch(request, confirm_resume_fleet, do)


@action(Access.OPERATE)
def stop(request: HttpRequest) -> HttpResponseBase:
    """Stop what runs in the fleet, or on the host that the request names."""
    given = _given(request)
    try:
        host = named_host(str(named)) if (named := given.get("host")) else None
    except ConfigurationError as error:
        return _back(request, error)
    shown, problem = look(host=host), Problem()
    if request.method == "POST":
        reason = request.POST.get("reason", "")
        try:
            seconds = _seconds(request.POST.get("seconds", ""))
            operation_id = begin_stop(
                request, only=host, reason=reason, seconds=seconds, before=_before(shown)
            )
            return redirect("admin:console_operation", operation_id)
        except PidispatchError as error:
            problem = _problem(error)
    pause = shown.facts.pause if shown.facts else None
    return _render(request, confirm_stop(host, held=shown.drain if host else pause), shown, problem)


def _switch(
    request: HttpRequest,
    confirmation: Callable[[Sequence[str]], Confirmation],
    do: Callable[[Sequence[str]], Done],
) -> HttpResponseBase:
    try:
        queues = _queues(_given(request))
    except ConfigurationError as error:
        return _back(request, error)
    problem = Problem()
    if request.method == "POST":
        try:
            return _told(request, do(queues))
        except PidispatchError as error:
            problem = _problem(error)
    return _render(request, confirmation(queues), look(queues), problem)


def _told(request: HttpRequest, done: Done) -> HttpResponseBase:
    if done.said:
        messages.success(request, done.said)
    for note in done.notes:
        messages.warning(request, note)
    return redirect("admin:console_switch")


def _back(request: HttpRequest, error: PidispatchError) -> HttpResponseBase:
    messages.error(request, _said(error))
    return redirect("admin:console_switch")


def _render(
    request: HttpRequest, confirmation: Confirmation, shown: Look, problem: Problem
) -> HttpResponseBase:
    context = {
        "confirmation": confirmation,
        "look": shown,
        "pauses": pauses(shown.facts, confirmation.ends) if shown.facts and confirmation.ends else None,
        "problem": problem.text,
        "wrong": problem.field,
        "reason": request.POST.get("reason", ""),
        "lasting": request.POST.get("for", "")[: durations.LONGEST_TEXT],
        "longest_lasting": durations.LONGEST_TEXT,
        "seconds": request.POST.get("seconds", str(_SECONDS)),
    }
    return render(request, "switch_confirm.html", confirmation.title, context)


def _given(request: HttpRequest) -> QueryDict:
    return request.POST if request.method == "POST" else request.GET


def _queues(given: QueryDict) -> tuple[str, ...]:
    """Read which queues are meant; none is the whole fleet, unless some were to be chosen."""
    queues = named_queues(given.getlist("queue")[:_MOST_QUEUES])
    if given.get("some") and not queues:
        raise ConfigurationError("No queue was chosen. Choose at least one, or pause or resume everything.")
    return queues


def _lasting(text: str) -> timedelta | None:
    try:
        return durations.parse(text) if text.strip() else None
    except ValueError as error:
        raise FieldError("for", str(error)) from error


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5 and int(text) <= _LONGEST_SECONDS):
        raise FieldError(
            "seconds",
            f"{text[:20]!r} is no time to wait; expected whole seconds from 0 to {_LONGEST_SECONDS}",
        )
    return int(text)


def _before(shown: Look) -> Any:
    seen = shown.seen
    return {"unseen": True} if seen is None else {"switch": seen.state.head, "running": seen.running_head}


def _problem(error: PidispatchError) -> Problem:
    return Problem(_said(error), error.field if isinstance(error, FieldError) else "")


def _said(error: PidispatchError) -> str:
    return veiled(str(error), settings.PIDISPATCH_ENVIRONMENT)
