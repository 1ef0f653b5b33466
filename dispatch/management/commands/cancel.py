"""`manage.py cancel JOB…`: what waits is taken out of the queue, what runs is stopped by its worker."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import cancel_shown
from dispatch.console.arguments import HIDDEN
from dispatch.console.cancelling import cancel
from dispatch.console.server import confirming, switch_server


class Command(BaseCommand):
    help = (
        "Cancel jobs on any host: one that waits is taken out, one that runs is stopped. Needs VALKEY_URL"
        " only. Exit 1 when one is not cancelled, 2 when there is no such job."
    )
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "jobs", nargs="+", metavar="JOB", help="the id that `run` printed, or as RQ writes it"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        jobs = options["jobs"]
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            # Said on stderr: stdout is for programs.
            self.stderr.write(f"Valkey: {server.shown}")
            with confirming(server, "cancelled", jobs, told_by="why"):
                found = cancel(server.client, jobs)
        if options["json"]:
            self.stdout.write(json.dumps(cancel_shown.as_data(found)))
        else:
            for one in found:
                (self.stdout if one.is_done else self.stderr).write(cancel_shown.line(one))
        sys.exit(cancel_shown.exit_code(found))
