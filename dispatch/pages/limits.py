"""The pages of the scoped limits of this host."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dispatch.console.limit_rules import LIMIT_RULES
from dispatch.pages import settings_list, settings_rows
from dispatch.pages.access import Access, action, page


@page(Access.CONFIGURE)
def show(request: HttpRequest) -> HttpResponseBase:
    """List them."""
    return settings_list.show(request, LIMIT_RULES)


@action(Access.CONFIGURE)
def add(request: HttpRequest) -> HttpResponseBase:
    """Add one behind the others."""
    return settings_rows.edited(request, LIMIT_RULES, None)


@action(Access.CONFIGURE)
def edit(request: HttpRequest, index: int) -> HttpResponseBase:
    """Put one in the place of the one at this index."""
    return settings_rows.edited(request, LIMIT_RULES, index)


@action(Access.CONFIGURE)
def remove(request: HttpRequest, index: int) -> HttpResponseBase:
    """Take out the one at this index."""
    return settings_rows.removed(request, LIMIT_RULES, index)
