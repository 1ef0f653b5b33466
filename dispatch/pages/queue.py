"""The page of the queue: what runs, waits, sleeps and is held, of all queues or one; and why one job does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.admin.utils import quote
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console import about, lookup
from dispatch.console.about import NOTHING
from dispatch.console.board import read_board, read_totals
from dispatch.console.instants import stamp
from dispatch.console.slots import taken
from dispatch.console.standing import IN_LINE
from dispatch.pages import queue_view, why_view
from dispatch.pages.access import Access, page
from dispatch.pages.frame import fragment, render
from dispatch.pages.queue_asked import Asked, job_of, token_of
from dispatch.pages.sight import Unseen, sight
from hosts import roster


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the queues and a page of their jobs."""
    return render(request, "queue.html", "Queue", _context(request))


@page(Access.VIEW)
def lists(request: HttpRequest) -> HttpResponseBase:
    """Answer the jobs alone, for a page that refreshes them."""
    return fragment(request, "queue_lists.html", _context(request))


@page(Access.VIEW)
def tabs(request: HttpRequest) -> HttpResponseBase:
    """Answer how many jobs stand in which section, for a page that refreshes that."""
    asked = _asked(request)
    board = _seen(partial(read_totals, queue=asked.wanted.queue))
    offered = [] if isinstance(board, Unseen) else queue_view.tabs(board, asked)
    return fragment(request, "queue_tabs.html", {"tabs": offered, **_addresses(asked), **_unseen(board)})


@page(Access.VIEW)
def why(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show why a job does not run, or how it stands."""
    job_id = _job(token)
    return render(request, "why.html", f"Job {job_id}", _why(request, job_id, token))


@page(Access.VIEW)
def why_now(request: HttpRequest, token: str) -> HttpResponseBase:
    """Answer the same alone, for the page to refresh it."""
    return fragment(request, "why_now.html", _why(request, _job(token), token))


def _context(request: HttpRequest) -> dict[str, Any]:
    asked = _asked(request)
    can_cancel = request.user.has_perm(Access.OPERATE)
    board = _seen(partial(read_board, wanted=asked.wanted))
    context = {
        "asked": asked,
        "can_cancel": can_cancel and not asked.is_live,
        "may_cancel": can_cancel,
        **_addresses(asked),
        **_unseen(board),
    }
    if isinstance(board, Unseen):
        return context
    return {
        **context,
        "board": board,
        "as_of": stamp(board.now_ms),
        "asked_token": token_of(asked.wanted.beginning),
        "names": sorted({*board.names, *([asked.wanted.queue] if asked.wanted.queue else [])}),
        "notes": queue_view.told(board),
        "tabs": queue_view.tabs(board, asked),
        "queues": queue_view.queue_rows(board, asked),
        "sections": queue_view.TITLES.values(),
        "blocks": queue_view.blocks(board, asked),
    }


def _asked(request: HttpRequest) -> Asked:
    """Read the address; who has no boxes to tick loses none by lists that refresh themselves."""
    return Asked.of(request.GET, is_live_untold=not request.user.has_perm(Access.OPERATE))


def _addresses(asked: Asked) -> dict[str, str]:
    """Give the queries of this page, of it with the other way of refreshing, and without any filter."""
    here = asked.wanted.page
    other = replace(asked, is_live=not asked.is_live)
    return {
        "query": asked.address(page=here),
        # A long page does not refresh itself, and a short one of the same number has other jobs.
        "other_way": other.address(page=1 if asked.wanted.is_long else here, is_long=False),
    }


def _why(request: HttpRequest, job_id: str, token: str) -> dict[str, Any]:
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        found = seen.read(partial(lookup.why, given=job_id))
        context = {"job": job_id, "token": token, **_unseen(found)}
        if found is None or isinstance(found, Unseen):
            return context
        entry = found.facts.entry
        known = seen.read(partial(about.read, job_ids=(entry.job_id,)))
        fleet = seen.read(roster.read) if found.reason == IN_LINE else None
    answer = why_view.answer(
        found,
        NOTHING if isinstance(known, Unseen) else known.get(entry.job_id, NOTHING),
        "" if fleet is None or isinstance(fleet, Unseen) else taken(fleet, entry.queue),
    )
    may_act = request.user.has_perm(Access.OPERATE)
    return {
        **context,
        "answer": answer,
        "can_cancel": may_act and answer.can_be_cancelled,
        "can_rerun": may_act and answer.is_over,
        "run_url": _run_url(job_id) if answer.is_over and request.user.has_perm("runs.view_run") else None,
    }


def _run_url(job_id: str) -> str:
    return reverse("admin:runs_run_change", args=[quote(job_id)])


def _job(token: str) -> str:
    job_id = job_of(token)
    if job_id is None:
        raise Http404("No job has such an id.")
    return job_id


def _seen(ask: Any) -> Any:
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        return seen.read(ask)


def _unseen(found: object) -> dict[str, str]:
    return {"unseen": found.why if isinstance(found, Unseen) else ""}
