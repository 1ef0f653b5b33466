"""`manage.py pause`: stop taking work, here and now, until somebody resumes it."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN, duration, one_line
from dispatch.console.queues import KnownQueues, known_queues, named_queues, read_queues
from dispatch.console.server import switch_server
from dispatch.console.switched import counted, missing, switching
from dispatch.console.who import who
from hosts import keys, switches


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
            # A pause of the fleet holds every queue, found or not: nothing is looked up before it.
            before = read_queues(server.client) if named else None
            with switching(server, "paused", named, lambda: named or known_queues(server.client)):
                flag = switches.pause(
                    server.client,
                    named or (keys.FLEET,),
                    by=one_line(who()),
                    reason=one_line(options["reason"]),
                    lasting=options["lasting"],
                )
            found = before or read_queues(server.client)
            what = counted(named) if named else f"the whole fleet ({counted(found.names)})"
            self.stdout.write(f"Paused {what} on {server.shown}, {_until(flag)}.")
            for note in _notes(named, found):
                self.stderr.write(note)


def _notes(named: tuple[str, ...], found: KnownQueues) -> list[str]:
    """Say what a person should know who paused the fleet, or queues by name."""
    gap = missing(found)
    notes = [gap if named else f"{gap} The pause holds those as well."] if gap else []
    unknown = (queue for queue in named if queue not in found.names)
    return notes + [f"{queue} was not known here before: is the name right?" for queue in unknown]


def _until(flag: switches.PauseFlag) -> str:
    if flag.until_ms is None:
        return "until resumed"
    return f"until {datetime.fromtimestamp(flag.until_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
