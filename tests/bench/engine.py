"""The container engine of the benchmarks that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

import docker

from runs.engine import Engine
from runs.protocols import EngineSilentError


class UnavailableError(Exception):
    """This machine lacks what a benchmark needs; the text says what."""


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """A client of the engine; UnavailableError when none answers."""
    # Asked by the product's own edge first: docker-py leaves the socket of a refused connection lying.
    with closing(Engine(environment=dict(os.environ))) as edge:
        try:
            edge.ping()
        except EngineSilentError as error:
            raise UnavailableError("no container engine answers") from error
    client = docker.from_env(version="auto")
    try:
        yield client
    finally:
        client.close()
