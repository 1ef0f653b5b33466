"""Real containers for the tests of `runs`, each test under a host-id of its own, nothing left behind."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError

from runs.engine import Engine
from tests.harness.engine_proxy import UPSTREAM, EngineProxy
from tests.runs.jobs import Jobs, until


@pytest.fixture
def host_id(engine: Any) -> Iterator[str]:
    """A host-id that only this test uses; what carries it is removed afterwards."""
    host_id = f"test-{secrets.token_hex(8)}"
    yield host_id
    ours = {"label": [f"dev.pi-dispatch.host={host_id}"]}
    until(lambda: _removed(engine, ours))


def _removed(engine: Any, ours: dict[str, list[str]]) -> bool:
    """Whether nothing is left; a create without an answer may still be under way, a removal as well."""
    containers = engine.api.containers(all=True, filters=ours)
    networks = [] if containers else engine.api.networks(filters=ours)
    for container in containers:
        with suppress(APIError):
            engine.api.remove_container(container["Id"], force=True, v=True)
    for network in networks:
        with suppress(APIError):
            engine.api.remove_network(network["Id"])
    return not (containers or networks)


@pytest.fixture
def jobs(fake_image: str, host_id: str, tmp_path: Path) -> Jobs:
    """Makes job folders and the containers that belong to them."""
    return Jobs(folder=tmp_path, image=fake_image, host_id=host_id)


@pytest.fixture(scope="session")
def docker_backend(engine: Any) -> Iterator[Engine]:
    """Our own edge to the real engine."""
    backend = Engine(environment=os.environ)
    yield backend
    backend.close()


@pytest.fixture
def proxy(engine: Any) -> Iterator[EngineProxy]:
    """A socket in front of the engine that misbehaves when told to."""
    folder = Path(tempfile.mkdtemp(prefix="pd-px-"))
    upstream = os.environ.get("DOCKER_HOST", f"unix://{UPSTREAM}").removeprefix("unix://")
    with EngineProxy(folder, upstream=upstream) as proxy:
        yield proxy
    shutil.rmtree(folder)


@pytest.fixture
def proxied(proxy: EngineProxy) -> Iterator[Engine]:
    """Our edge to the engine behind the proxy, with short timeouts."""
    backend = Engine(environment=proxy.environment, quick_seconds=1.0, slow_seconds=1.5)
    backend.ping()
    yield backend
    backend.close()
