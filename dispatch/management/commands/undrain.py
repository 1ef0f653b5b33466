"""`manage.py undrain [HOST]`: let a host take jobs again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.console.drained import undrained
from dispatch.console.hosts import named_host, this_host
from dispatch.console.server import confirming, switch_server
from hosts import switches


class Command(BaseCommand):
    help = "End the drain of a host, and the request to stop that came with it. Needs VALKEY_URL only."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", nargs="?", metavar="HOST", help="default: this host (PI_WORKER_NAME)")

    def handle(self, *args: Any, **options: Any) -> None:
        environment = settings.PIDISPATCH_ENVIRONMENT
        host = this_host(environment) if options["host"] is None else named_host(options["host"])
        with switch_server(environment) as server, confirming(server, "undrained", (host,), told_by="fleet"):
            ended = switches.undrain(server.client, host)
            held = switches.read(server.client, ())
            said, *notes = undrained(host, held, ended, on=f" on {server.shown}")
        self.stdout.write(said)
        for note in notes:
            self.stderr.write(note)
