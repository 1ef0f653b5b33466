"""`manage.py why JOB`: why it is not running, since when, until when, and what ends that."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import lookup, why_shown
from dispatch.console.arguments import HIDDEN, one_line
from dispatch.console.server import switch_server
from dispatch.console.trigger_restore import is_installed
from pidispatch_site.errors import OperationalError


class Command(BaseCommand):
    help = "Say why a job is not running, or how it stands. Needs VALKEY_URL only."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", metavar="JOB", help="the id that `run` printed, or as RQ writes it")
        parser.add_argument("--json", action="store_true", help="print one JSON object, instants in ms")

    def handle(self, *args: Any, **options: Any) -> None:
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            # Said on stderr: stdout is for programs.
            self.stderr.write(f"Valkey: {server.shown}")
            found = lookup.why(server.client, options["job"])
            if found is None and is_installed(server.client, options["job"]):
                raise OperationalError(
                    f"{options['job']} is a schedule, no job: `manage.py triggers` shows when it starts next"
                    " and which job was its last."
                )
            if found is None:
                raise OperationalError(
                    f"Job {one_line(options['job'])} is not known there: it never was, it was"
                    " cancelled before it started, or it ended so long ago that its id is forgotten. The"
                    " console's list of runs keeps what ran."
                )
        if options["json"]:
            self.stdout.write(json.dumps(why_shown.as_data(found)))
        else:
            self.stdout.write("\n".join(why_shown.lines(found)))
