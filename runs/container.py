"""The container of a job as a value (placeholder signature; owned by the container part)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
