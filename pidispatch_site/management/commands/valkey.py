"""`manage.py valkey`: look at the embedded server, or end it. Nothing here starts it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from pidispatch_site import conf, embedded
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory


class Command(BaseCommand):
    help = "Show or stop the Valkey server that this product runs when VALKEY_URL=embedded."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["status", "stop"])

    def handle(self, *args: Any, **options: Any) -> None:
        state = StateDirectory(conf.state_dir(settings.PIDISPATCH_ENVIRONMENT))
        if options["action"] == "stop":
            ended = embedded.stop(state)
            self.stdout.write(
                f"The embedded Valkey server of {state.path} {'ended' if ended else 'was not running'}."
            )
            return
        address = embedded.find(state)
        if address is None:
            raise OperationalError(f"The embedded Valkey server of {state.path} is not running.")
        self.stdout.write(f"Running: process {embedded.pid(state)}, {address}")
