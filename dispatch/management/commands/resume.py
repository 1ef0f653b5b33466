"""`manage.py resume`: let work start again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import pausing
from dispatch.console.arguments import HIDDEN, one_line
from dispatch.console.pause_shown import ended_by
from dispatch.console.queues import named_queues, read_queues
from dispatch.console.server import Server, switch_server
from hosts.keys import FLEET
from pidispatch_site.errors import ConfigurationError, OperationalError


class Command(BaseCommand):
    help = "End every pause and stop request, or the pauses of the named queues. Needs VALKEY_URL only."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queues", nargs="*", metavar="QUEUE", help="default: all of them")
        parser.add_argument(
            "--fleet-only",
            action="store_true",
            help="end the fleet's pause and its requests to stop, and leave the pauses of single queues",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        named = named_queues(options["queues"])
        if named and options["fleet_only"]:
            raise ConfigurationError("Name queues or give --fleet-only, not both.")
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            on = f" on {server.shown}"
            if named:
                resumed = pausing.resume(server, named)
                if refusal := resumed.refusal(on=on):
                    raise OperationalError(f"{refusal} {resumed.remedy(of_fleet=ended_by(FLEET))}")
                self.stdout.write(resumed.said(on=on))
                return
            if options["fleet_only"]:
                self._fleet(server, on)
            else:
                self._everything(server, on)

    def _fleet(self, server: Server, on: str) -> None:
        fleet = pausing.resume_fleet(server, read_queues(server.client))
        self.stdout.write(fleet.said(on=on))
        for pause in fleet.still:
            self.stderr.write(f"Still holds: {one_line(pause)}")
        for note in fleet.notes():
            self.stderr.write(note)

    def _everything(self, server: Server, on: str) -> None:
        all_of_it = pausing.resume_all(server, read_queues(server.client))
        self.stdout.write(all_of_it.said(on=on))
        for pause in all_of_it.own_pauses:
            self.stderr.write(f"Ended as well: {one_line(pause)}")
        for note in all_of_it.notes():
            self.stderr.write(note)
