"""What runs a container, seen from the runner: the contract that every backend keeps.

`runs.engine` (Docker and Podman), `runs.process` (no isolation, scripted agent only) and the null backend of
the benchmarks implement it and pass the same contract tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from runs.container import ContainerSpec

ENDED = frozenset({"exited", "dead", "removing"})
"""The engine's words for a container whose processes are over."""


class EngineAnsweredError(Exception):
    """The engine answered create or start with an error: nothing ran, the reservation is paid back.

    `token` names the kind of trouble for the log. `conflict` is true when the name was taken (409, or
    Podman's 500).
    """

    def __init__(self, token: str, *, conflict: bool = False) -> None:
        self.token = token
        self.conflict = conflict
        super().__init__(token)


class EngineSilentError(Exception):
    """No usable answer (timeout, lost connection): whether it happened is unknown.

    `unreachable` is true when no connection came about, so the request certainly never left this process.
    """

    def __init__(self, token: str, *, unreachable: bool = False) -> None:
        self.token = token
        self.unreachable = unreachable
        super().__init__(token)


class EngineNotFoundError(Exception):
    """The engine answered: there is no such container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """One container as the engine shows it.

    `status` is the engine's word (`created`, `running`, `exited`, …); `exit_code` and `oom_killed` are only
    known from `inspect` of one that ended (else None and False).
    """

    id: str
    name: str
    status: str
    labels: Mapping[str, str]
    exit_code: int | None = None
    oom_killed: bool = False

    @property
    def ended(self) -> bool:
        """Whether its processes are over."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """One network; `attached` are the names of the containers on it."""

    id: str
    name: str
    labels: Mapping[str, str]
    attached: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What the preflight reads off an image; a label that holds nothing usable is None.

    `user` is the image's own user as it stands there, empty when it names none (it runs as root then).
    """

    id: str
    pi_version: str | None
    forges: frozenset[str] | None
    capabilities: frozenset[str] | None
    user: str = field(default="")


class Output(Protocol):
    """A container's output while it comes; losing parts of it is allowed, holding up the container is not."""

    def read(self) -> bytes:
        """Read the next bytes, stdout and stderr in order; blocks until there are some; empty at the end.

        An end says nothing about the container. Raises `EngineSilentError` when the stream breaks.
        """
        ...

    def close(self) -> None:
        """End it; from any thread, at any time, more than once; a blocked `read` returns."""
        ...


class Changes(Protocol):
    """Ids of containers that may have changed: a hint, which may be late, missing or end without a word."""

    def __iter__(self) -> Iterator[str]:
        """Blocks between ids; ends when the stream does, however that came about."""
        ...

    def close(self) -> None:
        """End it; from any thread, at any time, more than once."""
        ...


class Backend(Protocol):
    """One container engine. Each call raises `EngineSilentError` when it gets no usable answer.

    Thread-safe: one object serves every run of the process. `container` is an id or an exact name. `labels`
    selects what carries each of them with that value; an empty mapping selects everything.
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
        """One container; `EngineNotFoundError` when there is none."""
        ...

    def listing(self, labels: Mapping[str, str]) -> list[ContainerFacts]:
        """Containers of any state."""
        ...

    def changes(self, labels: Mapping[str, str]) -> Changes:
        """Listen for containers that end. A backend that has no such news raises `EngineSilentError`."""
        ...

    def tail(self, container: str) -> bytes:
        """Read the last 8 KiB of an ended container's output, in order; bounded work whatever was printed.

        `EngineNotFoundError` when there is none.
        """
        ...

    def follow(self, container: str) -> Output:
        """Its output from the first byte on; `EngineNotFoundError` when there is none."""
        ...

    def stop(self, container: str, *, grace_seconds: int) -> None:
        """SIGTERM, after the grace SIGKILL; answers when it has ended. Gone and ended count as stopped."""
        ...

    def discard(self, container: str) -> bool:
        """Remove it unless it is running, in one step; false when it is running. Not there is removed."""
        ...

    def remove(self, container: str) -> None:
        """Remove it by force with its anonymous volumes; not found counts as removed."""
        ...

    def networks(self, labels: Mapping[str, str]) -> list[NetworkFacts]:
        """Networks with what is attached to each."""
        ...

    def remove_network(self, network: str) -> None:
        """Detach whatever is on it and remove it, by id; not found counts as removed."""
        ...
