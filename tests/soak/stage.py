"""Where a soak plays: a Valkey server of its own, a fleet, and the engine with the fake runner's image."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness.fleet import Fleet
from tests.harness.valkey_server import ValkeyServer


@contextmanager
def stage(*, containers: bool = True) -> Iterator[tuple[Fleet, ValkeyServer]]:
    """Set it up and take everything away again; AssertionError where the engine does not answer."""
    home = Path(tempfile.mkdtemp(prefix="pd-vk-"))
    server = ValkeyServer(home)
    try:
        server.start()
        engine, image = _engine() if containers else (None, None)
        with Fleet(server.url, image=image, engine=engine) as fleet:
            yield fleet, server
    finally:
        server.close()
        shutil.rmtree(home, ignore_errors=True)


def _engine() -> tuple[Any, str]:
    import docker
    import requests

    from tests.harness.images import build_fake_image

    try:
        client = docker.DockerClient.from_env(version="auto", timeout=60)
        client.ping()
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise AssertionError("no container engine answers; this soak needs one") from error
    return client, build_fake_image(client)


class Clock:
    """How long a soak has been going on."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._began, 1)
