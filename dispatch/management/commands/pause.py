"""`manage.py pause`: stop taking work, here and now, until somebody resumes it."""

from __future__ import annotations

import getpass
import socket
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from redis.exceptions import RedisError

from dispatch import durations
from dispatch.console.arguments import HIDDEN, one_line
from dispatch.console.queues import known_queues, named_queues
from dispatch.console.server import Server, confirming, switch_server
from hosts import keys, switches


def duration(text: str) -> timedelta:
    """Read `--for`; argparse turns the error into usage and exit code 2."""
    try:
        return durations.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


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
            known = _known(server)
            with confirming(server, "paused", named):
                flag = switches.pause(
                    server.client,
                    named or (keys.FLEET,),
                    by=one_line(_who()),
                    reason=one_line(options["reason"]),
                    lasting=options["lasting"],
                )
            self.stdout.write(f"Paused {_what(named, known)} on {server.shown}, {_until(flag)}.")
            for queue in named:
                if known and queue not in known:
                    self.stderr.write(f"{queue} was not known here before: is the name right?")


def _known(server: Server) -> tuple[str, ...]:
    """List the queues for the answer; none on a fault, which must not keep anybody from pausing."""
    try:
        return known_queues(server.client)
    except RedisError:
        return ()


def _what(named: tuple[str, ...], known: tuple[str, ...]) -> str:
    return ", ".join(named) or f"the whole fleet ({', '.join(known) or 'its queues could not be read'})"


def _who() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):
        return "unknown"


def _until(flag: switches.PauseFlag) -> str:
    if flag.until_ms is None:
        return "until resumed"
    return f"until {datetime.fromtimestamp(flag.until_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
