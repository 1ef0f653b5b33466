"""A schedule's own job started now, and a schedule that was taken down put back: each is asked first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console import by_hand, fleet, schedules, triggers_file
from dispatch.console.asked import Asked
from dispatch.console.destination import Destination
from dispatch.console.lookup import why_it_waits
from dispatch.console.server import Server, confirming
from dispatch.console.trigger_restore import restore
from dispatch.instants import epoch_ms, instant_of
from dispatch.pages import audit
from dispatch.pages.access import Access, action
from dispatch.pages.acting import acting
from dispatch.pages.change import reason_of
from dispatch.pages.configured import configured
from dispatch.pages.frame import render
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.veil import veiled
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.producer import Exists, Producer
from dispatch.triggers.on_fields import is_id
from pidispatch_site.errors import ConfigurationError, OperationalError, PidispatchError

if TYPE_CHECKING:
    import redis

T = TypeVar("T")

_LIST = "admin:dispatch_schedule_changelist"
_AT = "at"
_NOT_TOLD = (
    "It cannot be started: the triggers file of this host has no such schedule, or there is something"
    " wrong with the file or the settings. Who may change schedules is told here what it is."
)
# A page that was left open: what is asked for on it so much later is another job.
_SAME_FOR_MS = 3_600_000


@action(Access.OPERATE)
def run_now(request: HttpRequest, schedule_id: str) -> HttpResponseBase:
    """Start the job of a schedule of this host's file, as `run --trigger` does."""
    title = "Run a schedule now"
    now = datetime.now(UTC)
    try:
        asked = _asked(request, schedule_id, now=_instant(request, now))
        if request.method == "POST":
            with acting(settings.PIDISPATCH_ENVIRONMENT) as server:
                return _started(request, server, asked.destination(server.client), asked, schedule_id)
        goes, waits = _within_a_page(lambda client: _where(client, asked))
    except PidispatchError as error:
        return _refused(request, title, error)
    notes = (goes.note, f"It will wait: {waits}" if waits else None)
    context = {
        "said": f"A job of {schedule_id} is put at the end of {goes.queue}, beside its own instants.",
        "notes": [note for note in notes if note],
        "at": epoch_ms(now),
        "submit": "Run it now",
    }
    return render(request, "schedule_action.html", title, context)


@action(Access.OPERATE)
def put_back(request: HttpRequest, schedule_id: str) -> HttpResponseBase:
    """Let a schedule go on that kept losing its worker, as `triggers --restore` does."""
    title = "Restore a schedule"
    try:
        if request.method == "POST":
            with acting(settings.PIDISPATCH_ENVIRONMENT) as server:
                return _restored(request, server, schedule_id, _torn(server.client, schedule_id))
        torn = _within_a_page(lambda client: _torn(client, schedule_id))
    except PidispatchError as error:
        return _refused(request, title, error)
    context = {
        "said": f"Schedule {schedule_id} starts again at its next instant, on {', '.join(torn)}."
        if torn
        else f"Schedule {schedule_id} is not taken down on any queue. There is nothing to restore.",
        "notes": ["Its jobs kept losing their workers. Find out why first, else it is taken down again."],
        "submit": "Restore it" if torn else "",
    }
    return render(request, "schedule_action.html", title, context)


def _within_a_page(ask: Callable[[redis.Redis], T]) -> T:
    """Look at the server before anything is done; OperationalError where that would hold the page up."""
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        found = seen.read(ask)
    if isinstance(found, Unseen):
        raise OperationalError(found.why)
    return found


def _where(client: redis.Redis, asked: Asked) -> tuple[Destination, str | None]:
    goes = asked.destination(client)
    return goes, why_it_waits(client, goes.queue)


def _asked(request: HttpRequest, schedule_id: str, *, now: datetime) -> Asked:
    if not is_id(schedule_id):
        raise ConfigurationError("There is no schedule of that id.")
    # No option of the command but this one.
    options: dict[str, Any] = defaultdict(lambda: None, trigger=schedule_id)
    config = configured()
    try:
        return by_hand.asked(config, options, now=now)
    except ConfigurationError as error:
        if request.user.has_perm(Access.CONFIGURE):
            raise
        # It quotes what stands in the file.
        raise ConfigurationError(_NOT_TOLD) from error


def _instant(request: HttpRequest, now: datetime) -> datetime:
    """Tell for which instant it is asked: that of the page, so that a form that is sent twice starts one."""
    text, now_ms = request.POST.get(_AT, ""), epoch_ms(now)
    at = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(now_ms)) else 0
    return instant_of(at) if now_ms - _SAME_FOR_MS <= at <= now_ms else now


def _started(
    request: HttpRequest, server: Server, goes: Destination, asked: Asked, schedule_id: str
) -> HttpResponseBase:
    job, job_id = goes.job or asked.job, asked.job_id
    with (
        audit.recorded(request, "schedule-started", schedule_id, reason=reason_of(request)) as doing,
        confirming(server, "enqueued", (job_id,), told_by="queue"),
    ):
        found = Producer(server.client).enqueue(
            goes.queue, job_id, job, keeping=LOCAL, scope_hash=job.scope_hash, needs=goes.needs
        )
        doing.after, doing.is_idle = {"job": job_id, "queue": goes.queue}, isinstance(found, Exists)
    if isinstance(found, Exists):
        messages.info(request, f"Job {job_id} is there already: {found.state}, on {found.queue}.")
    else:
        messages.success(request, f"Job {job_id} was put at the end of {goes.queue}.")
    return HttpResponseRedirect(reverse(_LIST))


def _torn(client: redis.Redis, schedule_id: str) -> tuple[str, ...]:
    """List the queues where it is taken down."""
    file = triggers_file.read(settings.PIDISPATCH_ENVIRONMENT)
    case = schedules.begin(client, fleet.read(client), file).cases.get(schedule_id)
    return tuple(one.queue for one in (case.installed if case else ()) if one.torn)


def _restored(
    request: HttpRequest, server: Server, schedule_id: str, torn: tuple[str, ...]
) -> HttpResponseBase:
    with (
        audit.recorded(request, "schedule-restored", schedule_id, reason=reason_of(request)) as doing,
        confirming(server, "restored", (schedule_id,), told_by="triggers"),
    ):
        doing.before = {"takenDown": torn}
        found = restore(server, schedule_id)
        doing.after, doing.is_idle = {"restored": found.queues}, not found.queues
    (messages.success if found.queues else messages.warning)(request, found.said())
    if found.unread:
        unread = "; ".join(found.unread)
        messages.warning(request, f"Not everything could be read ({unread}); repeat it then.")
    return HttpResponseRedirect(reverse(_LIST))


def _refused(request: HttpRequest, title: str, error: PidispatchError) -> HttpResponseBase:
    problems: tuple[str, ...] = error.problems if isinstance(error, ConfigurationError) else (str(error),)
    if not request.user.has_perm(Access.CONFIGURE):
        problems = tuple(veiled(one, settings.PIDISPATCH_ENVIRONMENT) for one in problems)
    return render(request, "trigger_unable.html", title, {"problems": problems})
