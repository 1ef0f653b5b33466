"""Where the console's pages are, below the admin's own address: route, name and view, a line a page."""

from __future__ import annotations

from dispatch.pages import banner, operation_page, overview
from dispatch.pages.access import View

ROUTES: tuple[tuple[str, str, View], ...] = (
    ("banner/", "console_banner", banner.show),
    ("overview/<slug:name>/", "console_overview_part", overview.part),
    ("operations/<str:operation_id>/", "console_operation", operation_page.show),
    ("operations/<str:operation_id>/progress/", "console_operation_progress", operation_page.progress),
)
