"""`manage.py reroute HOST`: the waiting jobs of a dead or retired host go to others that can do them."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import rerouted
from dispatch.console.arguments import HIDDEN
from dispatch.console.counts import number_of
from dispatch.console.reroute import SHARED, reroute, wished
from dispatch.console.server import confirming, switch_server
from hosts import names
from pidispatch_site.errors import OperationalError


class Command(BaseCommand):
    help = (
        "Move the waiting jobs of a dead or drained host's queue to hosts that can do them, and list what"
        " stays and why. Needs VALKEY_URL only. Exit 1 when a waiting job stays."
    )
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", metavar="HOST", help="whose queue")
        parser.add_argument(
            "--to",
            metavar="HOST",
            help=f"a live host, or `{SHARED}`; default: the shared queue, or whoever can",
        )
        parser.add_argument(
            "--local-folders", action="store_true", help="jobs on folders too: they are the same elsewhere"
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would move")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        wish = wished(
            options["host"],
            options["to"],
            same_folders=options["local_folders"],
            is_tried=options["dry_run"],
        )
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            # Said on stderr: stdout is for programs.
            self.stderr.write(f"Valkey: {server.shown}")
            with confirming(server, "rerouted", (names.host_queue(wish.host),), told_by="queue"):
                found = reroute(server.client, wish)
        for note in found.notes:
            self.stderr.write(note)
        if options["json"]:
            self.stdout.write(json.dumps(rerouted.as_data(found)))
        else:
            self.stdout.write("\n".join(rerouted.lines(found)))
        if found.waiting:
            left = number_of(found.waiting, "waiting job stays", "waiting jobs stay")
            raise OperationalError(f"{left} on {found.queue}.")
