from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """The site itself: configuration, the web process and its commands; it has no tables."""

    name = "pidispatch_site"

    def ready(self) -> None:
        """Register the check of deployments, and what is told of logins."""
        from pidispatch_site import deploy_check, login_events  # noqa: F401
