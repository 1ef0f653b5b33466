from __future__ import annotations

from django.apps import AppConfig


class HostsConfig(AppConfig):
    """The `hosts` app."""

    name = "hosts"
    default_auto_field = "django.db.models.BigAutoField"
