"""`manage.py resume`: let work start again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.console.queues import KnownQueues, named_queues, read_queues
from dispatch.console.server import Server, switch_server
from dispatch.console.switched import counted, missing, switching
from hosts import keys, names, switches
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
            if named:
                self.stdout.write(_resume_some(server, named))
                return
            found = read_queues(server.client)
            self.stdout.write(_resume_all(server, found))
            if gap := missing(found):
                self.stderr.write(f"{gap} Run it again when that is mended.")


def _resume_all(server: Server, found: KnownQueues) -> str:
    with switching(server, "resumed", (), lambda: found.names):
        scopes = switches.resume_all(server.client, queues=found.names, hosts=found.hosts)
    # The list of known queues is anybody's to write: what is no queue of ours is not shown.
    ended = [scope for scope in scopes if names.is_queue(scope)]
    queues = names.union(found.names, ended)
    where = f"on {server.shown}; {_listed(queues)}."
    if keys.FLEET in scopes:
        return f"Resumed the whole fleet {where}"
    return f"Resumed {counted(ended)} {where}" if ended else f"Nothing was paused {where}"


def _listed(queues: tuple[str, ...]) -> str:
    return counted(queues) if len(queues) > 1 else f"queue: {counted(queues)}"


def _resume_some(server: Server, named: tuple[str, ...]) -> str:
    with switching(server, "resumed", named, lambda: named):
        ended = switches.resume(server.client, named)
        still = switches.read(server.client, named).paused_queues
    if still:
        raise OperationalError(
            f"Still paused on {server.shown}: {', '.join(still)}, because the whole fleet is paused."
            " Run `manage.py resume` without a queue to end that."
        )
    idle = [queue for queue in named if queue not in ended]
    told = [f"Resumed {counted(ended)}"] if ended else []
    told += [f"{', '.join(idle)} had no pause of its own"] if idle else []
    return f"{'; '.join(told)}, on {server.shown}."
