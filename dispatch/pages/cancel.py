"""Cancelling jobs: those that were chosen or all of a filter, shown first; many of them in the background."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from time import monotonic
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from redis.exceptions import RedisError

from dispatch.console import about, cancel_shown
from dispatch.console.board import matching_ids
from dispatch.console.cancelling import Cancelled, cancel
from dispatch.console.cancelling_many import MOST, Targets, in_chunks, runs
from dispatch.console.counts import number_of
from dispatch.console.server import Server, confirming, explained
from dispatch.pages import cancel_view, operations
from dispatch.pages.access import Access, action
from dispatch.pages.acting import acting, by
from dispatch.pages.audit import record, recorded
from dispatch.pages.change import reason_of
from dispatch.pages.frame import render
from dispatch.pages.queue_asked import Asked, job_of, token_of
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.veil import veiled
from dispatch.queue.states import look_at
from pidispatch_site.errors import OperationalError, PidispatchError

if TYPE_CHECKING:
    import redis

# Django takes no more than 2.5 MB.
_LONGEST_FORM = 2_000_000
# Of more it is told only how the first ones stand, those that run among them: a page has little time.
_MOST_LOOKED_AT = 1_000
# So many that wait are cancelled while the person waits.
_MOST_AT_ONCE = 20
# Nobody waits for a server that takes so long for one answer.
_SLOW_SECONDS = 0.5
_COLUMNS = ("Job", "What became of it")


@action(Access.OPERATE)
def cancel_jobs(request: HttpRequest) -> HttpResponseBase:
    """Show what is to be cancelled, and once that is confirmed cancel just that."""
    asked = Asked.of(request.POST)
    back = f"{reverse('admin:console_queue')}{asked.address(page=asked.wanted.page)}"
    if request.method != "POST":
        return redirect(back)
    try:
        if "confirmed" in request.POST:
            return _confirmed(request, back)
    except PidispatchError as error:
        messages.error(request, veiled(str(error), settings.PIDISPATCH_ENVIRONMENT))
        return redirect(back)
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        found = seen.read(partial(_targets, request))
        shown = [] if isinstance(found, Unseen) else [*found[1]][: cancel_view.SHOWN]
        known = seen.read(partial(about.read, job_ids=shown))
    if isinstance(found, Unseen):
        messages.error(request, found.why)
        return redirect(back)
    job_ids, targets, is_cut = found
    if not job_ids:
        return _none(request, back)
    preview = cancel_view.preview(job_ids, targets, {} if isinstance(known, Unseen) else known)
    context = {"preview": preview, "is_cut": is_cut, "asked": asked, "back": back}
    return render(request, "cancel.html", "Cancel jobs", context)


def _confirmed(request: HttpRequest, back: str) -> HttpResponseBase:
    job_ids = _fitting(_ids(request.POST.get("jobs", "").split()))
    with acting(settings.PIDISPATCH_ENVIRONMENT) as server:
        if not job_ids:
            return _none(request, back)
        began = monotonic()
        targets = look_at(server.client, job_ids[:_MOST_LOOKED_AT])
        if (
            len(job_ids) > _MOST_AT_ONCE
            or any(map(runs, targets.values()))
            or monotonic() - began > _SLOW_SECONDS
        ):
            return _in_background(request, job_ids, targets)
        return _cancel(request, server, targets, back)


def _none(request: HttpRequest, back: str) -> HttpResponseBase:
    messages.warning(request, "No job was chosen: tick those to be cancelled.")
    return redirect(back)


def _targets(request: HttpRequest, client: redis.Redis) -> tuple[list[str], Targets, bool]:
    """Find those that were asked for, how the first stand, and whether more match than one go cancels."""
    chosen = _chosen(request, client)
    job_ids = _fitting(chosen)
    return job_ids, look_at(client, job_ids[:_MOST_LOOKED_AT]), len(job_ids) < len(chosen)


def _chosen(request: HttpRequest, client: redis.Redis) -> list[str]:
    if request.POST.get("which") != "all":
        return _ids(request.POST.getlist("job"))
    # One more than may be, to know whether there are more.
    raw_ids = matching_ids(client, Asked.of(request.POST).wanted, limit=MOST + 1)
    return _ids([raw_id.decode("utf-8", "backslashreplace") for raw_id in raw_ids])


def _fitting(job_ids: Sequence[str]) -> list[str]:
    """Keep as many as are cancelled in one go and as one form can carry."""
    sizes = accumulate(len(token_of(job_id) or "") + 1 for job_id in job_ids)
    return [job_id for job_id, size in zip(job_ids[:MOST], sizes, strict=False) if size <= _LONGEST_FORM]


def _ids(tokens: Sequence[str]) -> list[str]:
    """Read natural ids, each once; what is no id of ours is left out: no command could name it either."""
    return list(dict.fromkeys(filter(None, map(job_of, tokens))))


def _cancel(request: HttpRequest, server: Server, targets: Targets, back: str) -> HttpResponseBase:
    ids = list(targets)
    with (
        recorded(request, "cancel", cancel_view.target(ids), reason=reason_of(request)) as doing,
        confirming(server, "cancelled", ids, told_by="why"),
    ):
        doing.before = {"jobs": {job_id: one and one.state for job_id, one in targets.items()}}
        found = cancel(server.client, ids)
        doing.after = {"jobs": {one.job_id: one.fate for one in found}}
    for one in found:
        (messages.success if one.is_done else messages.warning)(request, cancel_shown.line(one))
    return redirect(back)


def _in_background(request: HttpRequest, job_ids: Sequence[str], targets: Targets) -> HttpResponseBase:
    target, reason = cancel_view.target(job_ids), reason_of(request)
    before = cancel_view.before(job_ids, targets)
    found: list[Cancelled] = []

    def begun(operation_id: str) -> None:
        record(request, "cancel", target, reason=reason, before=before, after={"operation": operation_id})

    def ended(progress: operations.Progress) -> bool:
        after = {"operation": progress.id, "state": progress.state, "became": cancel_view.counted(found)}
        return record(request, "cancel-ended", target, reason=reason, before=before, after=after)

    operation_id = operations.begin(
        settings.PIDISPATCH_ENVIRONMENT,
        kind="cancel",
        by=by(request),
        reason=reason,
        work=lambda operation: _work(operation, job_ids, found),
        columns=_COLUMNS,
        total=len(job_ids),
        entries=operations.Entries(begun, ended),
    )
    return redirect("admin:console_operation", operation_id)


def _work(
    operation: operations.Operation, job_ids: Sequence[str], found: list[Cancelled]
) -> operations.Result:
    """Cancel them and tell of each, at last of what is left first; `found` gets what became of them."""
    try:
        for some in in_chunks(operation.client, look_at(operation.client, job_ids)):
            found += some
            operation.add(*map(_row, some))
            operation.advance(len(found))
    except RedisError as fault:
        left = number_of(len(job_ids) - len(found), "job is", "jobs are")
        raise OperationalError(
            f"{explained(fault, operation.shown)}\nOf {left} not known what became: repeating this is safe."
        ) from fault
    if any(not one.is_done for one in found):
        # Who looks for the few that are left of a thousand finds them first.
        operation.show(list(map(_row, sorted(found, key=lambda one: one.is_done))))
    return cancel_view.result(found)


def _row(one: Cancelled) -> operations.Row:
    return operations.Row((one.job_id, cancel_shown.line(one)), one.is_done)
