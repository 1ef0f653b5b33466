"""`manage.py budget`: what was spent of each cap, what is left, and when each window turns."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.console.budget import Budget, as_data, caps_in_force, read
from dispatch.console.budget_bars import ink_for
from dispatch.console.budget_table import table
from dispatch.console.server import reached
from pidispatch_site import clients
from pidispatch_site.conf import Config
from pidispatch_site.places import StateDirectory


class Command(BaseCommand):
    help = "Show the caps in force on this host, what is counted against each, and when it turns."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object, instants in ms")

    def handle(self, *args: Any, **options: Any) -> None:
        config: Config = settings.PIDISPATCH
        caps = caps_in_force(config)
        url = clients.resolve(config.valkey_url, StateDirectory(config.state_dir), start=False)
        with reached(url) as server:
            budget = read(server.client, caps)
        # Said on stderr: stdout is for programs.
        self.stderr.write(f"Valkey: {server.shown}", str)
        if options["json"]:
            self.stdout.write(json.dumps(as_data(budget)))
        else:
            self._show(budget)

    def _show(self, budget: Budget) -> None:
        encoding = getattr(self.stdout, "encoding", None) or "ascii"
        columns = shutil.get_terminal_size().columns if self.stdout.isatty() else None
        for line in table(budget, columns=columns, ink=ink_for(encoding)):
            # A folder may have any name; a terminal that cannot print it must not hide the figures.
            self.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding))
