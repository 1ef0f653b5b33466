"""`python -m tests.soak.console_queries < ADDRESSES`: what each asks the database, and what none asks for.

The addresses are a JSON list. The answer is a JSON object: `statements` by address, SQL as it was sent, with
`statuses` and `seconds` (where the first time took long, those of a second: templates are read once);
`unasked`, the routes of the site to which no address leads; `unread`, each parameter that a page looks for
and none of its addresses has, as `route: name`. Database and Valkey are those of the environment; the site
runs in this process, for a web process tells nothing of that.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

_LONG_SECONDS = 0.5
# What Django's own lists look for beside filters, in windows that choose for a field.
_OF_DJANGO = frozenset({"_popup", "_to_field", "_facets", "_changelist_filters", "next"})


def main(addresses: Sequence[str]) -> dict[str, Any]:
    """Ask for each once, as an admin."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "pidispatch_site.settings"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext
    from django.urls import get_resolver, resolve

    browser = Client(headers={"host": "127.0.0.1"})
    browser.force_login(User.objects.get(username="admin"))
    statements: dict[str, list[str]] = {}
    statuses: dict[str, int] = {}
    seconds: dict[str, float] = {}

    def ask(address: str) -> float:
        began = time.perf_counter()
        answer = browser.get(address)
        b"".join(answer)
        statuses[address] = answer.status_code
        return time.perf_counter() - began

    looked: dict[str, set[str]] = defaultdict(set)
    given: dict[str, set[str]] = defaultdict(set)
    for address in addresses:
        asked = urlsplit(address)
        route = resolve(asked.path).route
        with _noting(looked[route]), CaptureQueriesContext(connection) as queries:
            seconds[address] = ask(address)
        if seconds[address] > _LONG_SECONDS:
            seconds[address] = ask(address)
        statements[address] = [one["sql"] for one in queries.captured_queries]
        given[route] |= parse_qs(asked.query, keep_blank_values=True).keys()
    unread = [
        f"{route}: {name}" for route in looked for name in sorted(looked[route] - given[route] - _OF_DJANGO)
    ]
    unasked = sorted({*_routes(get_resolver(), "")} - looked.keys())
    asked_for = {"statements": statements, "statuses": statuses, "seconds": seconds}
    return {**asked_for, "unasked": unasked, "unread": unread}


def _routes(resolver: Any, before: str) -> Iterator[str]:
    """Write each route as Django writes that of an address that it has found."""
    for pattern in resolver.url_patterns:
        own = str(pattern.pattern)
        route = before + (own.removeprefix("^") if before else own)
        if hasattr(pattern, "url_patterns"):
            yield from _routes(pattern, route)
        else:
            yield route


@contextmanager
def _noting(names: set[str]) -> Iterator[None]:
    """Note which parameters of its address a view looks for; lists of them are told by none."""
    from django.core.handlers.wsgi import WSGIRequest
    from django.http import QueryDict

    class Noted(QueryDict):
        def get(self, key: str, *others: Any) -> Any:
            names.add(key)
            return super().get(key, *others)

        def getlist(self, key: str, *others: Any) -> Any:
            names.add(key)
            return super().getlist(key, *others)

        def __getitem__(self, key: str) -> Any:
            names.add(key)
            return super().__getitem__(key)

        def dict(self) -> Any:
            return _Plain(super().dict(), names)

    def read(request: Any) -> QueryDict:
        return Noted(request.environ.get("QUERY_STRING", ""))

    with mock.patch.object(WSGIRequest, "GET", property(read)):
        yield


class _Plain(dict[str, Any]):
    """What a query gives as a plain dictionary, of which each look is noted."""

    def __init__(self, given: dict[str, Any], names: set[str]) -> None:
        super().__init__(given)
        self._names = names

    def get(self, key: str, *others: Any) -> Any:
        self._names.add(key)
        return super().get(key, *others)


if __name__ == "__main__":
    json.dump(main(json.load(sys.stdin)), sys.stdout)
