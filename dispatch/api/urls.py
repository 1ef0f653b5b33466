"""Where programs read; whatever else is asked for below /api/ is answered as JSON, too."""

from __future__ import annotations

from django.urls import path, re_path

from dispatch.api import metrics, views

urlpatterns = [
    path("api/status", views.status, name="api_status"),
    path("api/fleet", views.fleet_, name="api_fleet"),
    path("api/queue", views.queue, name="api_queue"),
    path("api/runs", views.runs, name="api_runs"),
    path("metrics", metrics.show, name="metrics"),
    re_path(r"^api(?:/.*)?$", views.nothing),
]
