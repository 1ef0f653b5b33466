"""`manage.py status`: one JSON line on what waits, runs, sleeps and failed, and whether work is paused."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.console.server import switch_server
from dispatch.console.status import read_status


class Command(BaseCommand):
    help = "Print one JSON line: the kill switch and the counts of all queues. Needs VALKEY_URL only."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def handle(self, *args: Any, **options: Any) -> None:
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            line = json.dumps(read_status(server.client))
            # Said on stderr: stdout is for programs.
            self.stderr.write(f"Valkey: {server.shown}")
            self.stdout.write(line)
