"""`manage.py queue [QUEUE…]`: what runs, waits in line, sleeps and is held, and why."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import lookup, queue_shown
from dispatch.console.arguments import HIDDEN
from dispatch.console.queues import named_queues, read_queues
from dispatch.console.server import switch_server
from dispatch.console.switched import missing
from pidispatch_site.errors import OperationalError

_MOST = 1000


def limit(text: str) -> int:
    """Read `--limit`; argparse turns the error into usage and exit code 2."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST):
        raise ArgumentTypeError(f"{text!r} is no limit; expected a whole number from 1 to {_MOST}")
    return int(text)


class Command(BaseCommand):
    help = (
        "List what runs, waits, sleeps and is held, of all queues or the named ones. Needs VALKEY_URL only."
    )
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queues", nargs="*", metavar="QUEUE", help="default: all queues")
        parser.add_argument(
            "--limit", type=limit, default=20, metavar="N", help="jobs shown of each section; default 20"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, instants in ms")

    def handle(self, *args: Any, **options: Any) -> None:
        named = named_queues(options["queues"])
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            # Said on stderr: stdout is for programs.
            self.stderr.write(f"Valkey: {server.shown}")
            found = read_queues(server.client)
            unreadable: dict[str, str] = {}
            views = lookup.view(
                server.client, named or found.names, limit=options["limit"], unreadable=unreadable
            )
        if gap := missing(found):
            self.stderr.write(gap)
        for queue, token in unreadable.items():
            self.stderr.write(f"{queue} is left out: a key of it cannot be read ({token}).")
        for queue in named:
            if queue not in found.names:
                self.stderr.write(f"{queue} was never used here: is the name right?")
        if options["json"]:
            self.stdout.write(json.dumps(queue_shown.as_data(views, unreadable)))
        else:
            self.stdout.write("\n".join(queue_shown.lines(views)))
        if named and unreadable:
            raise OperationalError(f"{', '.join(unreadable)} cannot be read.")
