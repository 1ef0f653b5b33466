"""The product in a process of its own, as the benchmarks start it: `python -m tests.bench.product JSON`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running(
    state: Path, url: str, *, concurrency: int, null: bool, image: str = "null:latest"
) -> Iterator[subprocess.Popen[str]]:
    """Run a worker that has booted for as long as the block lasts; its event log is the pipe `stdout`."""
    worker = _start(state, url, concurrency=concurrency, null=null, image=image)
    try:
        _until_started(worker)
        yield worker
    finally:
        _end(worker)


def until_completed(
    worker: subprocess.Popen[str], count: int, *, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Read its log until so many jobs are completed; RuntimeError when one is not. `meanwhile` a line."""
    assert worker.stdout is not None
    for line in worker.stdout:
        meanwhile()
        count -= '"job_completed"' in line
        if '"job_failed"' in line or '"refused_' in line:
            raise RuntimeError(line)
        if count == 0:
            return
    raise RuntimeError("the worker ended before its jobs had")


def _start(state: Path, url: str, *, concurrency: int, null: bool, image: str) -> subprocess.Popen[str]:
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "DOCKER_HOST") if name in os.environ},
        "DJANGO_SETTINGS_MODULE": "pidispatch_site.settings",
        "PI_STATE_DIR": str(state),
        "PI_ENV_FILE": str(_empty(state)),
        "VALKEY_URL": url,
        "PI_EGRESS": "0",
        "PI_CONCURRENCY": str(concurrency),
        "PI_DAILY_CAP": "1000000",
        "PI_JOB_IMAGE": image,
        "PI_AUTH_FROM_PI": "0",
        "ANTHROPIC_API_KEY": "bench-not-a-key",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bench.product", json.dumps({"null": null})],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )


def _until_started(worker: subprocess.Popen[str]) -> None:
    """Read its log up to the end of the boot."""
    assert worker.stdout is not None
    for line in worker.stdout:
        if '"worker_started"' in line:
            return
    raise RuntimeError("the worker ended before it had started")


def _end(worker: subprocess.Popen[str]) -> None:
    worker.send_signal(signal.SIGTERM)
    try:
        worker.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.communicate()
        raise


def _empty(state: Path) -> Path:
    path = state.parent / "no-variables"
    path.touch()
    return path


def main() -> None:
    import django

    django.setup()
    from django.conf import settings

    from dispatch.queue.owner import Owner
    from dispatch.worker.build import build
    from dispatch.worker.edges import Edges
    from dispatch.worker.followed import OperatorFiles
    from hosts.identity import StateDirectory, WorkerLock, host_id, new_boot
    from pidispatch_site import log, schema
    from runs.backends import make_backend
    from runs.workspace.jobuser import Account
    from tests.harness.null_runs import NullBackend, NullRuns, null_prepare

    config = settings.PIDISPATCH
    log.configure(log.EventLog(host=config.worker_name))
    with WorkerLock(config.state_dir):
        schema.migrate_if_needed(StateDirectory(config.state_dir))
        this_host = host_id(config.state_dir)
        owner = Owner(boot=new_boot(this_host), host_id=this_host, host=config.worker_name)
        account = Account(os.getuid(), os.getgid())
        if json.loads(sys.argv[1])["null"]:
            edges = Edges(backend=NullBackend(), runs=NullRuns(), prepare=null_prepare, account=account)
        else:
            edges = Edges(backend=make_backend(config), account=account)
        worker = build(config, owner, config.valkey_url, edges, OperatorFiles())
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        worker.run()


if __name__ == "__main__":
    main()
