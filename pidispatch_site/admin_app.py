"""Django's admin with the console as its site; named here as a string, since it stands in an upper layer."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class ConsoleAdminConfig(AdminConfig):
    """The admin app."""

    default_site = "dispatch.pages.site.ConsoleSite"
