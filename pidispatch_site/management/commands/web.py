"""`manage.py web`: the console in a browser."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.management.base import BaseCommand
from django.core.wsgi import get_wsgi_application
from django.db import DEFAULT_DB_ALIAS, connections
from django.urls import reverse

from pidispatch_site import databases, schema, webserver
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.places import StateDirectory, keep_files_private


class Command(BaseCommand):
    help = "Serve the console on this machine until it is interrupted."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bind", default="127.0.0.1:8000", metavar="HOST:PORT")
        parser.add_argument(
            "--open-to-network",
            action="store_true",
            help="allow an address that other machines reach; put a proxy with TLS in front of it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = webserver.parsed(options["bind"])
        if not (options["open_to_network"] or webserver.is_loopback(host)):
            raise ConfigurationError(
                f"--bind {options['bind']} can be reached from other machines, over HTTP without encryption. "
                "Keep 127.0.0.1 and put a proxy with TLS in front of it, or add --open-to-network; either "
                "way PI_WEB_ORIGINS must name the address that browsers use.",
            )
        keep_files_private()
        state = StateDirectory(settings.PIDISPATCH.state_dir)
        with webserver.listen(host, port) as listener:
            schema.migrate_if_needed(state)
            # The serving process is a fork: it must not share a connection with this one.
            connections.close_all()
            databases.for_requests(connections.settings[DEFAULT_DB_ALIAS])
            address = webserver.address(listener)
            self.stdout.write(
                f"Console: {address}/admin/  (a way in: manage.py loginlink --base-url {address})"
            )
            self.stdout.flush()
            webserver.WebServer(listener.detach(), _application).run()


def _application() -> WSGIHandler:
    """Make the application with every page loaded: the first who asks should not wait for that."""
    application = get_wsgi_application()
    # Reads every address, and so every view.
    reverse("healthz")
    return application
