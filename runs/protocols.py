"""What runs a container, seen from the runner: the contract that every backend keeps.

`runs.engine` (Docker and Podman), `runs.process` (no isolation, scripted agent only) and the null backend of
the benchmarks implement it and pass the same contract tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from runs.container import ContainerSpec


class EngineAnsweredError(Exception):
    """The engine answered create or start with an error: nothing ran, the reservation is paid back.

    `conflict` is true when the name was taken (409, or Podman's 500).
    """

    def __init__(self, token: str, *, conflict: bool = False) -> None:
        self.conflict = conflict
        super().__init__(token)


class EngineSilentError(Exception):
    """No answer (timeout, refused or lost connection): whether it happened is unknown."""


class EngineNotFoundError(Exception):
    """The engine answered: there is no such container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """One container as the engine shows it.

    `status` is the engine's word (`created`, `running`, `exited`, …); `exit_code` and `oom_killed` are only
    known from `inspect` (a listing leaves them None and False).
    """

    id: str
    name: str
    status: str
    labels: Mapping[str, str]
    exit_code: int | None = None
    oom_killed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What the preflight reads off an image; a label that holds nothing usable is None."""

    id: str
    pi_version: str | None
    forges: frozenset[str] | None
    capabilities: frozenset[str] | None


class Backend(Protocol):
    """One container engine. Each call raises `EngineSilentError` when nobody answers.

    Thread-safe: one object serves every run of the process.
    """

    def image(self, reference: str) -> ImageFacts | None:
        """Facts of a local image; None when the engine answers that it is not there. Never pulls."""
        ...

    def create(self, spec: ContainerSpec) -> str:
        """Create the container and return its id; `EngineAnsweredError` when refused."""
        ...

    def start(self, container: str) -> None:
        """Start it once; `EngineAnsweredError` when refused. Never called twice for one container."""
        ...

    def inspect(self, container: str) -> ContainerFacts:
        """One container by id or exact name; `EngineNotFoundError` when there is none."""
        ...

    def listing(self) -> list[ContainerFacts]:
        """Every container of any state that carries one of our labels or our name prefix, of every host-id."""
        ...

    def tail(self, container: str) -> bytes:
        """The last 8 KiB of its output, stdout and stderr demultiplexed; bounded work whatever was printed."""
        ...

    def stop(self, container: str, *, grace_seconds: int) -> None:
        """SIGTERM, after the grace SIGKILL; answers when it has ended. Not found counts as stopped."""
        ...

    def remove(self, container: str) -> None:
        """Remove it by force; not found counts as removed."""
        ...
