"""`manage.py stop`: pause, have every host stop what it runs, and prove it container by container."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import stop_shown
from dispatch.console.arguments import HIDDEN, one_line
from dispatch.console.hosts import named_host
from dispatch.console.server import confirming, switch_server
from dispatch.console.stopped import Stopped
from dispatch.console.stopping import Patience, stop
from dispatch.console.who import who
from pidispatch_site.errors import OperationalError

_LONGEST_SECONDS = 3600


def seconds(text: str) -> int:
    """Read `--timeout`; argparse turns the error into usage and exit code 2."""
    if not (text.isascii() and text.isdigit() and int(text) <= _LONGEST_SECONDS):
        raise ArgumentTypeError(
            f"{text!r} is no timeout; expected whole seconds from 0 to {_LONGEST_SECONDS}"
        )
    return int(text)


class Command(BaseCommand):
    help = (
        "Pause the fleet, stop every running job and list each container as gone or unconfirmed; with --host"
        " drain that host and stop its jobs. Needs VALKEY_URL only."
    )
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", metavar="HOST", help="only this worker; default: the whole fleet")
        parser.add_argument(
            "--reason",
            default="",
            help="why, shown wherever the pause or drain is shown; without it one that stands keeps its own",
        )
        parser.add_argument(
            "--timeout", type=seconds, default=30, metavar="S", help="seconds to wait; default 30"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, instants in ms")

    def handle(self, *args: Any, **options: Any) -> None:
        only = named_host(options["host"]) if options["host"] is not None else None
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            # Said on stderr: stdout is for programs.
            self.stderr.write(f"Valkey: {server.shown}")
            with confirming(server, "stopped", [only] if only else []):
                found = stop(
                    server.client,
                    only=only,
                    by=one_line(who()),
                    reason=one_line(options["reason"]),
                    tell=self._teller(),
                    retrying=lambda token, may_be_asked: self.stderr.write(
                        stop_shown.retrying(token, may_be_asked=may_be_asked)
                    ),
                    patience=Patience(whole=options["timeout"]),
                )
        if options["json"]:
            self.stdout.write(json.dumps(stop_shown.as_data(found)))
        else:
            self.stdout.write("\n".join([*stop_shown.lines(found), stop_shown.switched(found)]))
        if not found.is_proven:
            raise OperationalError(stop_shown.remedy(found))

    def _teller(self) -> Callable[[Stopped], None]:
        """Tell on stderr who was asked, once, and from then on how far it has come."""
        known: list[str] = []

        def tell(found: Stopped) -> None:
            fresh = [line for line in stop_shown.asked(found) if line not in known]
            known.extend(fresh)
            for line in (*fresh, stop_shown.progress(found)):
                self.stderr.write(line)

        return tell
