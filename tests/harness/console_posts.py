"""Every address of the site, about something that is there, and whose business a POST to it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.urls import get_resolver

#: What Django's own pages of users do.
USERS = frozenset(f"auth_user_{verb}" for verb in ("add", "change", "delete", "password_change"))
#: What everybody does with their own session and password.
OWN = frozenset(("login", "logout", "password_change"))
# Django's own, besides: its pages answer to any method, as to a GET.
_DJANGOS = ("auth_", "autocomplete", "jsi18n", "password_change_done")


def addresses(about: Mapping[str, str]) -> dict[str, str]:
    """Every address that has a name, by it; `about` says what stands in the place of a parameter."""
    return {
        name: "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: about[found[1]], route)
        for name, route in _routes(get_resolver(), "")
    }


def ours(about: Mapping[str, str]) -> dict[str, str]:
    """Those below the console's address that are no page of Django's."""
    return {
        name: address
        for name, address in addresses(about).items()
        if address.startswith("/admin/") and name not in OWN and not name.startswith(_DJANGOS)
    }


def _routes(resolver: Any, before: str) -> Iterator[tuple[str, str]]:
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from _routes(pattern, route)
        # A regular expression is Django's list of an app, which shows.
        elif pattern.name and "(?P" not in route:
            yield pattern.name, route
