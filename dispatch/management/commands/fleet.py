"""`manage.py fleet`: which hosts there are, how each is doing, what each is, and what to look after."""

from __future__ import annotations

import json
import shutil
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import fleet, fleet_data, fleet_shown
from dispatch.console.arguments import HIDDEN
from dispatch.console.findings_shown import marks_for
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.server import switch_server
from hosts.rows import Unreachable

_NARROWEST = 80


class Command(BaseCommand):
    help = "List the hosts of the fleet with their queues, and what to look after. Needs VALKEY_URL only."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object, instants in ms")

    def handle(self, *args: Any, **options: Any) -> None:
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            facts = fleet.read(server.client)
        # Said on stderr: stdout is for programs.
        self.stderr.write(f"Valkey: {server.shown}", str)
        if options["json"]:
            self.stdout.write(json.dumps(fleet_data.as_data(facts)))
        else:
            self._show(facts)
        if isinstance(facts.roster, Unreachable):
            self.stderr.write(f"The registry of hosts cannot be read: {facts.roster.reason}.")
            sys.exit(1)

    def _show(self, facts: FleetFacts) -> None:
        encoding = getattr(self.stdout, "encoding", None) or "ascii"
        columns = shutil.get_terminal_size().columns if self.stdout.isatty() else fleet_shown.WIDEST
        columns = min(max(columns, _NARROWEST), fleet_shown.WIDEST)
        for line in fleet_shown.lines(facts, marks=marks_for(encoding), columns=columns):
            # A reason may have any letters; a terminal that cannot print them must not hide the rest.
            self.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding))
