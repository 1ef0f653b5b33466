"""`manage.py drain [HOST]`: a host finishes what it runs and takes nothing new."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN, duration, one_line
from dispatch.console.drained import drained
from dispatch.console.hosts import named_host, this_host
from dispatch.console.server import confirming, switch_server
from dispatch.console.who import who
from hosts import roster, switches


class Command(BaseCommand):
    help = "Let a host finish what it runs and take nothing new. Needs VALKEY_URL only."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", nargs="?", metavar="HOST", help="default: this host (PI_WORKER_NAME)")
        parser.add_argument("--reason", default="", help="why, shown wherever the drain is shown")
        parser.add_argument(
            "--for", dest="lasting", type=duration, metavar="DURATION", help="end by itself, e.g. 2h"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        environment = settings.PIDISPATCH_ENVIRONMENT
        host = this_host(environment) if options["host"] is None else named_host(options["host"])
        with switch_server(environment) as server:
            with confirming(server, "drained", (host,), told_by="fleet"):
                flag = switches.drain(
                    server.client,
                    host,
                    by=one_line(who()),
                    reason=one_line(options["reason"]),
                    lasting=options["lasting"],
                )
            said, *notes = drained(host, flag, roster.read(server.client), on=f" on {server.shown}")
        self.stdout.write(said)
        for note in notes:
            self.stderr.write(note)
