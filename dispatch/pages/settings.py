"""The page of settings: what is in force on this host and where from, and its operator's files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console.adoption import SETTINGS, Adoption
from dispatch.console.settings import Setting
from dispatch.operator_files import overlay, strict_json
from dispatch.operator_files.overlay import SECRET_PROFILES
from dispatch.operator_files.overlay_file import REWRITER
from dispatch.operator_files.problems import OperatorFileError
from dispatch.pages import followed, settings_files
from dispatch.pages.access import Access, page
from dispatch.pages.configured import configured
from dispatch.pages.frame import fragment, render
from dispatch.pages.settings_files import KINDS, FileLine
from dispatch.pages.settings_overlay_change import in_force_with
from dispatch.pages.sight import Unseen, sight
from dispatch.pages.veil import veiled
from pidispatch_site.errors import ConfigurationError, PidispatchError

_PROFILE = re.compile(rf"{SECRET_PROFILES.name}[.\[]\S*")
_REFUSED = "While the settings file is like this, every job of this host is refused."


@dataclass(frozen=True, slots=True)
class InForce:
    """Every key with its value; `problems` say why they cannot be told, or are not what jobs run with."""

    settings: tuple[Setting, ...] = ()
    problems: tuple[str, ...] = ()


@page(Access.VIEW)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show both."""
    found = _in_force()
    problems = found.problems
    if not request.user.has_perm(Access.CONFIGURE):
        problems = tuple(map(_veiled, problems))
    context = {"settings": found.settings, "problems": problems, "files": _files()}
    return render(request, "settings.html", "Settings", context)


@page(Access.VIEW)
def live(request: HttpRequest) -> HttpResponseBase:
    """Answer what the files say and who has them, for the page that fetches it again."""
    return fragment(request, "settings_files.html", {"files": _files()})


@page(Access.VIEW)
def taken(request: HttpRequest, kind: str) -> HttpResponseBase:
    """Answer who has taken one file over, for the page that fetches it again."""
    if kind not in KINDS:
        raise Http404
    environment = settings.PIDISPATCH_ENVIRONMENT
    adoption: Adoption | Unseen
    try:
        path = settings_files.path_of(kind, environment, configured)
        if path is None:
            raise Http404
        with sight(environment) as seen:
            adoption = followed.adoption(seen, path, KINDS[kind], environment)
    except PidispatchError as error:
        adoption = Unseen(veiled(str(error), environment))
    live = reverse("admin:console_settings_taken", args=[kind])
    unseen = adoption.why if isinstance(adoption, Unseen) else ""
    return fragment(request, "adoption.html", {"adoption": adoption, "unseen": unseen, "live": live})


def _files() -> tuple[FileLine, ...]:
    environment = settings.PIDISPATCH_ENVIRONMENT
    with sight(environment) as seen:
        return tuple(settings_files.lines_of(seen, environment, configured, datetime.now(UTC)))


def _in_force() -> InForce:
    """Read the configuration and the file; of a file that does not load, what of it is allowed."""
    try:
        config = configured()
        content = REWRITER.content(config.settings_file)
    except PidispatchError as error:
        problems = error.problems if isinstance(error, ConfigurationError) else (str(error),)
        return InForce(problems=problems)
    document, problems = _document(content)
    return InForce(in_force_with(config, document), problems)


def _document(content: bytes | None) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Give the object that the file holds, else an empty one; and all that is wrong with the file."""
    document: Mapping[str, Any] = {}
    try:
        found = {} if content is None else strict_json.load(content, name=SETTINGS.what)
        document = found if isinstance(found, dict) else {}
        overlay.of_document(found, name=SETTINGS.what)
    except OperatorFileError as error:
        return document, (*error.problems, _REFUSED)
    return document, ()


def _veiled(problem: str) -> str:
    """Take out paths, and the names of profiles: all else of a problem is in words of ours."""
    return _PROFILE.sub(SECRET_PROFILES.name, veiled(problem, settings.PIDISPATCH_ENVIRONMENT))
