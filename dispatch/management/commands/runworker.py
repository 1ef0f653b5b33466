"""`manage.py runworker`: the one worker of this host, until SIGTERM or SIGINT."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.queue.owner import Owner
from dispatch.worker.build import build
from dispatch.worker.edges import Edges
from dispatch.worker.followed import load_operator_files
from dispatch.worker.worker import Worker
from hosts.identity import StateDirectory, WorkerLock, host_id, new_boot
from pidispatch_site import clients, conf, log, schema
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.known_names import BOUNDS_TO_COME
from pidispatch_site.places import keep_files_private
from runs.backends import make_backend
from runs.workspace.jobuser import Account

_OPEN_NETWORK = (
    "PI_EGRESS is on, and this version cannot restrict the network of a job yet."
    " Set PI_EGRESS=0 to say that jobs may reach the whole network."
)


class Command(BaseCommand):
    help = "Run this host's worker: take jobs, run each in one container, record what it did."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def handle(self, *args: Any, **options: Any) -> None:
        config = _configuration()
        keep_files_private()
        # Before the backend, which says something and keeps files in there.
        _open_log(config)
        StateDirectory(config.state_dir).made()
        serve(config, Edges(backend=make_backend(config), account=Account(os.getuid(), os.getgid())))


def serve(config: Config, edges: Edges) -> None:
    """Be this host's worker until a signal says stop; `OperationalError` when another one is."""
    state = StateDirectory(config.state_dir)
    _open_log(config)
    for warning in config.warnings:
        log.event(
            "configuration_warning",
            variable=warning.name,
            detail=warning.kind.value,
            nearest=warning.nearest,
        )
    # Before anything is contacted or taken: a bound that does not load must not be worked without.
    operator_files = load_operator_files(config)
    with WorkerLock(config.state_dir):
        schema.migrate_if_needed(state)
        url = clients.resolve(config.valkey_url, state, start=True)
        this_host = host_id(config.state_dir)
        owner = Owner(boot=new_boot(this_host), host_id=this_host, host=config.worker_name)
        worker = build(config, owner, url, edges, operator_files)
        _stop_on_signals(worker)
        worker.run()


def _configuration() -> Config:
    """Read the configuration; one `ConfigurationError` with all that is wrong and all that is left open."""
    environment = settings.PIDISPATCH_ENVIRONMENT
    problems = [
        f"{name} is set, and this version cannot keep to it yet: the worker would do more than it allows."
        " Take it out to start without that bound."
        for name in sorted(BOUNDS_TO_COME)
        if environment.get(name)
    ]
    with suppress(ConfigurationError):
        problems += [_OPEN_NETWORK] if conf.one("PI_EGRESS", environment) else []
    try:
        config = conf.load(environment)
    except ConfigurationError as error:
        raise ConfigurationError(*error.problems, *problems) from error
    if problems:
        raise ConfigurationError(*problems)
    return config


def _open_log(config: Config) -> None:
    log.configure(log.EventLog(host=config.worker_name, plain=sys.stdout.isatty()))


def _stop_on_signals(worker: Worker) -> None:
    # A handler only sets an event: a signal may land between any two lines.
    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        worker.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
