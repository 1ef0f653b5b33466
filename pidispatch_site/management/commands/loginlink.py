"""`manage.py loginlink`: a way into the console for whoever operates this machine."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.urls import reverse

from pidispatch_site import login, schema
from pidispatch_site.places import StateDirectory


class Command(BaseCommand):
    help = "Print an address that logs a browser in once, within ten minutes."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--user", metavar="NAME", help="default: the first superuser, made if there is none"
        )
        parser.add_argument(
            "--create",
            action="store_true",
            help="make the user of --user if there is none: a superuser, who may do everything",
        )
        parser.add_argument(
            "--base-url",
            metavar="URL",
            help="where the console is served (default: the first of PI_WEB_ORIGINS, else http://127.0.0.1:8000)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        config = settings.PIDISPATCH
        schema.migrate_if_needed(StateDirectory(config.state_dir))
        user, is_new = login.operator(options["user"], create=options["create"])
        if is_new:
            self.stderr.write(f"Made the superuser {user.get_username()}, who may do everything.", str)
        token = login.token_for(user)
        base = options["base_url"] or next(iter(config.web_origins), "http://127.0.0.1:8000")
        self.stdout.write(base.rstrip("/") + reverse("login", args=[token]))
