"""`manage.py pause`: stop taking work, here and now, until somebody resumes it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import pausing
from dispatch.console.arguments import HIDDEN, duration, one_line
from dispatch.console.queues import named_queues
from dispatch.console.server import switch_server
from dispatch.console.who import who


class Command(BaseCommand):
    help = (
        "Pause all queues, or the named ones. Running jobs finish; nothing new starts. Needs VALKEY_URL only."
    )
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queues", nargs="*", metavar="QUEUE", help="default: the whole fleet")
        parser.add_argument("--reason", default="", help="why, shown wherever the pause is shown")
        parser.add_argument(
            "--for", dest="lasting", type=duration, metavar="DURATION", help="end by itself, e.g. 2h"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        named = named_queues(options["queues"])
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            paused = pausing.pause(
                server,
                named,
                by=one_line(who()),
                reason=one_line(options["reason"]),
                lasting=options["lasting"],
            )
            self.stdout.write(paused.said(on=f" on {server.shown}"))
            for note in paused.notes():
                self.stderr.write(note)
