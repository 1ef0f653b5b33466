"""Whole workers for the acceptance tests: real processes on a real queue, with and without containers."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.harness.browser import missing
from tests.harness.console_stage import Stage, console_stage
from tests.harness.fleet import Fleet
from tests.harness.valkey_server import ValkeyServer
from tests.harness.worker_process import ROOT


@pytest.fixture
def fleet(valkey_url: str) -> Iterator[Fleet]:
    """Workers without containers: queue, money and records are real."""
    with Fleet(valkey_url) as fleet:
        yield fleet


@pytest.fixture
def contained(valkey_url: str, engine: object, fake_image: str) -> Iterator[Fleet]:
    """Workers whose jobs run in real containers of the fake runner."""
    with Fleet(valkey_url, image=fake_image, engine=engine) as fleet:
        yield fleet


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A Valkey server of the test's own, not started."""
    home = Path(tempfile.mkdtemp(prefix="pd-vk-"))
    server = ValkeyServer(home)
    yield server
    server.close()
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, valkey_server_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """The console of a fleet at work, in a browser; the tests of a file follow one another on it.

    A file's JUDGED_ELSEWHERE are kinds of pages that another one judges (`console_person.Person`).
    """
    if program := missing():
        absent(f"{program} is not installed")
    home = tmp_path_factory.mktemp("console")
    elsewhere = getattr(request.module, "JUDGED_ELSEWHERE", frozenset())
    pictures = _pictures(request.module.__name__.rpartition(".")[2])
    with console_stage(valkey_server_url, home, pictures, elsewhere=elsewhere) as stage:
        yield stage


def _pictures(file: str) -> Path:
    """Where the pictures of a file's tests stay; those of the last time go."""
    folder = Path(os.environ.get("SCREENSHOTS_DIR", ROOT / "screenshots")) / file
    shutil.rmtree(folder, ignore_errors=True)
    return folder
