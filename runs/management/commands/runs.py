"""`manage.py runs`: what ran on this host and, in a fleet, on the others, newest first."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from pidispatch_site import clients, schema
from pidispatch_site.databases import said
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory
from runs import merging, mirror
from runs.fleet_history import History, history_of
from runs.history import Facet
from runs.history_shown import lines
from runs.merging import Mirrored
from runs.outcome import Outcome

MOST = 1000


def limit(text: str) -> int:
    """Read `--limit`; argparse turns the error into usage and exit code 2."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise ArgumentTypeError(f"{text!r} is no limit; expected a whole number from 1 to {MOST}")
    return int(text)


class Command(BaseCommand):
    help = (
        "List the runs of this host and, with PI_WORKER_NAME, those of all hosts that declare one, newest"
        " first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--limit", type=limit, default=20, metavar="N", help="runs shown; default 20")
        parser.add_argument(
            "--outcome", choices=[outcome.value for outcome in Outcome], help="only runs that ended so"
        )
        parser.add_argument("--host", metavar="H", help="only runs of the worker of this name")
        parser.add_argument(
            "--json",
            action="store_true",
            help="print one JSON object: the records, and how complete they are",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        asked = {Facet.OUTCOME: options["outcome"], Facet.HOST: options["host"]}
        found = self._history({facet: value for facet, value in asked.items() if value}, options["limit"])
        if found.unreadable:
            self.stderr.write(f"{found.unreadable} rows of a later version are left out.")
        if options["json"]:
            self.stdout.write(json.dumps(_data(found)))
            return
        # On stderr, as what is said about the answer: stdout is the answer.
        is_declared = settings.PIDISPATCH.worker_name_declared
        self.stderr.write(merging.sentence(found.standing, is_declared=is_declared))
        self.stdout.write("\n".join(lines(found.records)))

    def _history(self, facets: dict[Facet, str], count: int) -> History:
        config = settings.PIDISPATCH
        schema.migrate_if_needed(StateDirectory(config.state_dir))
        mirrored = Mirrored(merging.OFF)
        if config.worker_name_declared:
            client = clients.state_client(config.valkey_url)
            # What is filtered by may stand in the mirror only: then it is read whole.
            mirrored = mirror.read(client, wanted=mirror.MOST_MEMBERS if facets else count)
            client.close()
        try:
            return history_of(mirrored, facets=facets, limit=count)
        except DatabaseError as error:
            raise OperationalError(f"The database of this host cannot be read: {said(error)}.") from error


def _data(found: History) -> dict[str, Any]:
    """Put the answer into the shape of `--json`; `reason` is there when the mirror is `unreachable`."""
    return {
        "degraded": found.standing.degraded.value,
        "reason": found.standing.reason,
        "runs": [record.to_json() for record in found.records],
    }
