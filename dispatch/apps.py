from __future__ import annotations

from django.apps import AppConfig


class DispatchConfig(AppConfig):
    """The `dispatch` app."""

    name = "dispatch"
    default_auto_field = "django.db.models.BigAutoField"
