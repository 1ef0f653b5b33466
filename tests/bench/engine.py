"""The container engine of the benchmarks that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import docker
import requests


class UnavailableError(Exception):
    """This machine lacks what a benchmark needs; the text says what."""


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """A client of the engine; UnavailableError when none answers."""
    try:
        client = docker.from_env(version="auto")
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise UnavailableError("no container engine answers") from error
    try:
        yield client
    finally:
        client.close()
