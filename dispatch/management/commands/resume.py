"""`manage.py resume`: let work start again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.console.queues import known_queues, named_queues
from dispatch.console.server import Server, confirming, switch_server
from hosts import keys, switches
from pidispatch_site.errors import OperationalError


class Command(BaseCommand):
    help = "End every pause and stop request, or the pauses of the named queues. Needs VALKEY_URL only."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queues", nargs="*", metavar="QUEUE", help="default: all of them")

    def handle(self, *args: Any, **options: Any) -> None:
        named = named_queues(options["queues"])
        with switch_server(settings.PIDISPATCH_ENVIRONMENT) as server:
            with confirming(server, "resumed", named):
                answer = _resume_some(server, named) if named else _resume_all(server)
            self.stdout.write(answer)


def _resume_all(server: Server) -> str:
    queues = known_queues(server.client)
    ended = switches.resume_all(server.client, queues=queues)
    if not ended:
        return f"Nothing was paused on {server.shown}; queues: {', '.join(queues)}."
    what = "the whole fleet" if keys.FLEET in ended else ", ".join(ended)
    return f"Resumed {what} on {server.shown}; queues: {', '.join(queues)}."


def _resume_some(server: Server, named: tuple[str, ...]) -> str:
    ended = switches.resume(server.client, named)
    still = switches.read(server.client, named).paused_queues
    if still:
        raise OperationalError(
            f"Still paused on {server.shown}: {', '.join(still)}, because the whole fleet is paused."
            " Run `manage.py resume` without a queue to end that."
        )
    idle = [queue for queue in named if queue not in ended]
    told = [f"Resumed {', '.join(ended)}"] if ended else []
    told += [f"{', '.join(idle)} had no pause of its own"] if idle else []
    return f"{'; '.join(told)}, on {server.shown}."
