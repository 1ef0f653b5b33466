"""Running an ended job on a local folder again, after a look at what that means."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from dispatch.console.about import about
from dispatch.console.arguments import one_line
from dispatch.console.lookup import why_it_waits
from dispatch.console.rerunning import Again, again, enqueue
from dispatch.console.server import Server
from dispatch.ids import MAX_ID_BYTES
from dispatch.pages.access import Access, action
from dispatch.pages.acting import acting
from dispatch.pages.audit import recorded
from dispatch.pages.change import reason_of
from dispatch.pages.frame import render
from dispatch.pages.queue_asked import token_of
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.veil import veiled
from pidispatch_site.errors import OperationalError, PidispatchError


@action(Access.OPERATE)
def rerun(request: HttpRequest) -> HttpResponseBase:
    """Show what would run again where, and once that is confirmed enqueue it; `job` is the natural id."""
    job_id = request.POST.get("job", "").strip()[:MAX_ID_BYTES]
    token = token_of(job_id)
    if request.method != "POST" or token is None:
        return redirect("admin:console_queue")
    if "confirmed" in request.POST:
        try:
            with acting(settings.PIDISPATCH_ENVIRONMENT) as server:
                return _rerun(request, server, again(server.client, job_id))
        except PidispatchError as error:
            return _refused(request, job_id, str(error))
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        asked = seen.read(partial(again, given=job_id))
        if isinstance(asked, Unseen):
            return _refused(request, job_id, asked.why)
        waits = seen.read(partial(why_it_waits, queue=asked.queue))
    context = {
        "again": asked,
        "about": about(asked.job),
        "waits": one_line(waits) if isinstance(waits, str) else "",
        "back": _back(request, job_id),
        "is_from_run": _is_from_run(request),
    }
    return render(request, "rerun.html", "Run a job again", context)


def _refused(request: HttpRequest, job_id: str, why: str) -> HttpResponseBase:
    said = veiled(why, settings.PIDISPATCH_ENVIRONMENT)
    messages.error(request, f"Job {one_line(job_id)} is not run again. {said}")
    return redirect(_back(request, job_id))


def _back(request: HttpRequest, job_id: str) -> str:
    """Give the address of the page that asked: that of the run, which outlives the job's data, or its own."""
    if _is_from_run(request):
        return reverse("admin:runs_run_change", args=[quote(job_id)])
    return reverse("admin:console_why", args=[token_of(job_id)])


def _is_from_run(request: HttpRequest) -> bool:
    return request.POST.get("from") == "run" and request.user.has_perm("runs.view_run")


def _rerun(request: HttpRequest, server: Server, asked: Again) -> HttpResponseBase:
    with recorded(request, "rerun", asked.of, reason=reason_of(request)) as doing:
        doing.before = {"job": asked.of}
        try:
            job_id = enqueue(server.client, asked, now=datetime.now(UTC))
        except OperationalError:
            doing.is_idle = True
            raise
        doing.after = {"job": job_id, "queue": asked.queue}
    messages.success(request, f"Job {job_id} waits on {asked.queue}.")
    return redirect("admin:console_why", token_of(job_id))
