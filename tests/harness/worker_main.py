"""The real worker as a process of its own, with a test's knobs: `python -m tests.harness.worker_main KNOBS`.

Everything else is configured as in production, by the environment; see `tests.harness.worker_process`.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import django

from tests.harness.knobs import Knobs, Points


def main(argument: str) -> None:
    knobs = Knobs.from_json(argument)
    if (machine := knobs.machine) is not None:
        # Before anything asks: two hosts without a name of their own are called as their machines are.
        socket.gethostname = lambda: machine
    django.setup()
    from django.conf import settings

    from dispatch.management.commands.runworker import serve
    from dispatch.worker.edges import Edges
    from pidispatch_site.errors import PidispatchError
    from runs.workspace.jobuser import Account
    from tests.harness import forge_jobs
    from tests.harness.null_runs import NullBackend, NullRuns, null_prepare
    from tests.harness.simulated_time import reading

    points = Points(knobs)
    shared: dict[str, Any] = {
        "account": Account(os.getuid(), os.getgid()),
        "timings": knobs.timings,
        "delays": points,
    }
    if knobs.schedule_clock is not None:
        shared["schedule_clock"] = reading(Path(knobs.schedule_clock))
    if knobs.repositories is not None:
        shared |= {"kinds": forge_jobs.KINDS, "prepare": _preparing(knobs, shared["account"])}
    elif knobs.without_containers:
        shared["prepare"] = null_prepare
    if knobs.without_containers:
        edges = Edges(backend=NullBackend(), runs=NullRuns(orders=True), **shared)
    else:
        edges = Edges(backend=PointedBackend(_engine(knobs), points), **shared)
    try:
        serve(settings.PIDISPATCH, edges)
    except PidispatchError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def _preparing(knobs: Knobs, account: Any) -> Any:
    from django.conf import settings

    from tests.harness import forge_jobs

    ground = Path(knobs.repositories or "")
    if knobs.without_containers:
        return forge_jobs.null_preparing(ground)
    jobs_dir = settings.PIDISPATCH.state_dir / "forge-jobs"
    return forge_jobs.preparing(ground, jobs_dir=jobs_dir, account=account)


def _engine(knobs: Knobs) -> Any:
    from django.conf import settings

    from runs.backends import make_backend
    from runs.engine import Engine

    changed: dict[str, Any] = {}
    if knobs.memory_bytes is not None:
        changed["memory_bytes"] = knobs.memory_bytes
    if knobs.engine_seconds is not None:
        changed |= {"slow_seconds": knobs.engine_seconds, "quick_seconds": knobs.engine_seconds / 3}
    return Engine(environment=os.environ, **changed) if changed else make_backend(settings.PIDISPATCH)


class PointedBackend:
    """A backend with points around the calls that change something: `before create`, `after create`, …"""

    POINTED = frozenset({"create", "start", "stop", "remove", "discard"})

    def __init__(self, backend: Any, points: Any) -> None:
        self._backend = backend
        self._points = points

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._backend, name)
        if name not in self.POINTED:
            return call

        def pointed(*args: Any, **kwargs: Any) -> Any:
            self._points(f"before {name}")
            answer = call(*args, **kwargs)
            self._points(f"after {name}")
            return answer

        return pointed


if __name__ == "__main__":
    main(sys.argv[1])
