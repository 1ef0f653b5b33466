"""Where the console's pages are, below the admin's own address: route, name and view, a line a page."""

from __future__ import annotations

from dispatch.pages.access import View

ROUTES: tuple[tuple[str, str, View], ...] = ()
