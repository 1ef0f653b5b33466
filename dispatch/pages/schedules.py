"""The page of schedules: what starts by itself, when, where, what was missed, and who has the file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dispatch.console import fleet, schedules, schedules_page, triggers_file
from dispatch.console.adoption import TRIGGERS, Adoption
from dispatch.console.schedule_facts import Overview
from dispatch.console.schedule_runs import last_runs
from dispatch.console.schedule_settling import settling
from dispatch.console.schedules_page import Listed
from dispatch.console.triggers_file import TriggersFile
from dispatch.pages import followed
from dispatch.pages.access import Access
from dispatch.pages.frame import fragment, render
from dispatch.pages.sight import Sight, Unseen, sight
from dispatch.pages.veil import veiled
from hosts.rows import Unreachable
from pidispatch_site.errors import PidispatchError
from runs import fleet_notice

SEARCH = "q"
_LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is on it: `listed` is None where not even the file can be told, `unseen` says what is not seen.

    `adoption` is None where there is no file.
    """

    search: str
    listed: Listed | None = None
    adoption: Adoption | Unseen | None = None
    unseen: str = ""


def show(request: HttpRequest) -> HttpResponseBase:
    """Show every schedule, first those that somebody should look after."""
    # Have the last runs on other hosts brought into the table for the next look.
    fleet_notice.viewed()
    return render(request, "schedules.html", "Schedules", {"page": _page(request)})


def live(request: HttpRequest) -> HttpResponseBase:
    """Answer the list alone, for the page that fetches it again."""
    return fragment(request, "schedules_live.html", {"page": _page(request)})


def _page(request: HttpRequest) -> Page:
    search = request.GET.get(SEARCH, "").strip()[:_LONGEST_SEARCH]
    environment = settings.PIDISPATCH_ENVIRONMENT
    is_editor = request.user.has_perm(Access.CONFIGURE)
    try:
        file = triggers_file.read(environment)
        with sight(environment) as seen:
            overview = _looked(seen, file)
        adoption = _adoption(overview, seen)
        if isinstance(adoption, Adoption) and adoption.is_settling:
            overview = settling(overview)
    except PidispatchError as error:
        return Page(search=search, unseen=str(error) if is_editor else veiled(str(error), environment))
    missing = f"{seen.fault} Shown is what the file says; how it stands is in Valkey."
    return Page(
        search=search,
        listed=schedules_page.listed(overview, search, is_editor=is_editor),
        adoption=adoption,
        unseen="" if overview.fleet else missing,
    )


def _looked(seen: Sight, file: TriggersFile) -> Overview:
    """Look at everything; where Valkey cannot be asked, at the file alone. Runs are asked for in between."""
    begun = seen.read(lambda client: schedules.begin(client, fleet.read(client), file))
    if not isinstance(begun, Unseen):
        last = begun.last(last_runs)
        overview = seen.read(lambda client: schedules.finish(client, begun, last))
        if not isinstance(overview, Unseen):
            return overview
    return schedules.of_file(file, last_runs, now=datetime.now(UTC))


def _adoption(overview: Overview, seen: Sight) -> Adoption | Unseen | None:
    facts, path = overview.fleet, overview.file.path
    if path is None:
        return None
    if facts is None:
        return Unseen(seen.fault)
    if isinstance(facts.roster, Unreachable):
        return Unseen(followed.unread(facts.roster, seen.shown))
    return followed.of_rows(facts.rows, path, TRIGGERS, settings.PIDISPATCH_ENVIRONMENT)
