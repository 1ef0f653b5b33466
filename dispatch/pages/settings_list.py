"""The rows of pause windows or scoped limits as a page lists them, with who has taken the file over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console.adoption import Adoption
from dispatch.console.rule_listing import MOST_LISTED, ListedRow, judged, listed, rows_of
from dispatch.console.rules import Rules
from dispatch.operator_files import strict_json
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.rewriting import Rewriter
from dispatch.pages import followed
from dispatch.pages.frame import render
from dispatch.pages.settings_files import path_named, readers_seen
from dispatch.pages.settings_rows import unable
from dispatch.pages.sight import Sight, Unseen, sight
from pidispatch_site.errors import PidispatchError

SEARCH = "q"
_LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What the page lists: `count` rows stand in the file, `more` that were looked for are not shown.

    Without a `path` this site is told of no file, and `readers` says who reads one.
    """

    path: Path | None
    search: str = ""
    count: int = 0
    rows: tuple[ListedRow, ...] = ()
    more: int = 0
    problems: tuple[str, ...] = ()
    is_there: bool = True
    can_edit: bool = True
    is_wrong: bool = False
    adoption: Adoption | Unseen | None = None
    readers: str = ""


def show(request: HttpRequest, rules: Rules) -> HttpResponseBase:
    """List every row, with what is wrong beside it."""
    search = request.GET.get(SEARCH, "").strip()[:_LONGEST_SEARCH]
    title = rules.followed.what.capitalize()
    try:
        with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
            listing = _listing(seen, rules, search, settings.PIDISPATCH_ENVIRONMENT)
    except PidispatchError as error:
        return unable(request, rules, title, error)
    context = {
        "rules": rules,
        "listing": listing,
        "live": reverse("admin:console_settings_taken", args=[rules.part]),
        "names": {verb: f"admin:console_{rules.slug}_{verb}" for verb in ("add", "edit", "remove")},
    }
    return render(request, "settings_rows.html", title, context)


def _listing(seen: Sight, rules: Rules, search: str, environment: Mapping[str, str]) -> Listing:
    path = path_named(rules.followed.variable, environment)
    if path is None:
        return Listing(path=None, readers=readers_seen(seen, rules.followed))
    adoption = followed.adoption(seen, path, rules.followed, environment)
    try:
        content = Rewriter(parse=rules.parse, empty=rules.empty).content(path)
        if content is None:
            return Listing(path=path, is_there=False, adoption=adoption)
        document = strict_json.load(content, name=str(path))
    except OperatorFileError as error:
        return Listing(path=path, problems=error.problems, can_edit=False, is_wrong=True, adoption=adoption)
    rows, found = rows_of(document, rules), judged(content, rules)
    shown = listed(rows, found, rules, search=search, now=datetime.now(UTC))
    return Listing(
        path=path,
        search=search,
        count=len(rows),
        rows=shown[:MOST_LISTED],
        more=max(0, len(shown) - MOST_LISTED),
        problems=found.problems,
        is_wrong=found.rules is None,
        adoption=adoption,
    )
