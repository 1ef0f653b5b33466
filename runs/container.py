"""The container of a job as a value: what differs between jobs, built by one pure function.

Isolation does not differ between jobs, so it is the constant `ISOLATION` and no field of the specification:
nothing that a job, a trigger or a setting says can weaken it (E 1.1). Mounts are those of E 1.2 and no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pidispatch_site.errors import ConfigurationError
from runs import environment, labels
from runs.request import JobUser, RunRequest

_OUTSIDE_OF_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What every job container is held by; the same for all of them."""

    drop_capabilities: tuple[str, ...] = ("ALL",)
    security_options: tuple[str, ...] = ("no-new-privileges",)
    processes: int = 512
    shared_memory_bytes: int = 1 << 30
    memory_bytes: int = 4 << 30
    #: Equal to the memory: none of it may go to the swap.
    memory_and_swap_bytes: int = 4 << 30
    nano_cpus: int = 2 * 10**9
    #: Chromium leaves zombies and the runner does not reap.
    init: bool = True
    #: The engine's own log, bounded: a flooding job fills no disk.
    log_driver: str = "json-file"
    log_options: tuple[tuple[str, str], ...] = (("max-size", "10m"), ("max-file", "2"))


ISOLATION = Isolation()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A bind mount; `source` is an absolute host path that we have checked ourselves."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """Name, image and everything that differs between jobs; isolation is constant and not a field."""

    name: str
    image: str
    environment: Mapping[str, str] = field(repr=False)
    mounts: tuple[Mount, ...]
    labels: Mapping[str, str]
    user: str | None


def container_name(job_id: str) -> str:
    """Name the job's container: the prefix and the id, with `_` for what a name cannot hold.

    Counts in UTF-16 units like the reference's names and file stems, so a character beyond them gives `__`.
    """
    if not job_id:
        raise ConfigurationError("a job without an id has no container")
    return labels.NAME_PREFIX + _OUTSIDE_OF_A_NAME.sub(
        lambda found: "_" * (1 + (found[0] > "\uffff")), job_id
    )


def build_spec(request: RunRequest) -> ContainerSpec:
    """Describe the container of this attempt; ConfigurationError for a request that no container may have."""
    name = container_name(request.job_id)
    return ContainerSpec(
        name=name,
        image=request.image,
        environment=environment.build(request, container_name=name),
        mounts=_mounts(request),
        labels=_labels(request),
        user=_user(request.user),
    )


def _mounts(request: RunRequest) -> tuple[Mount, ...]:
    if request.outbox is not None and request.kind != "local":
        raise ConfigurationError(f"a job of kind {request.kind!r} has no outbox: only local jobs may chain")
    table = (
        (request.job_dir, "/job", True),
        (request.workspace, "/workspace", False),
        (request.outbox, "/outbox", False),
        (request.global_pi_dir, "/opt/pi-global", True),
    )
    return tuple(
        Mount(source=_source(path, target), target=target, read_only=read_only)
        for path, target, read_only in table
        if path is not None
    )


def _source(path: Path, target: str) -> str:
    # A path that reaches upwards may not be the checked one, and the root holds every secret of the host.
    if not path.is_absolute() or ".." in path.parts or path == Path("/"):
        raise ConfigurationError(f"what is mounted at {target} must be an absolute folder below the root")
    return str(path)


def _labels(request: RunRequest) -> dict[str, str]:
    values = {
        labels.HOST: request.host_id,
        labels.BOOT: request.boot,
        labels.JOB: request.job_id,
        labels.ATTEMPT: request.token,
        labels.SCOPE: request.scope_hash,
        labels.DEADLINE: str(environment.epoch_seconds(request.deadline)),
    }
    return {label: value for label, value in values.items() if value is not None}


def _user(user: JobUser | None) -> str | None:
    if user is None:
        return None
    if user.uid <= 0 or user.gid <= 0:
        raise ConfigurationError(f"a job never runs as root: got uid {user.uid} and gid {user.gid}")
    return f"{user.uid}:{user.gid}"
