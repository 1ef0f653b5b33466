"""Which backend runs this host's containers (D12)."""

from __future__ import annotations

from typing import assert_never

from pidispatch_site.conf import Config
from pidispatch_site.variables import BackendKind
from runs.engine import Engine
from runs.process import ProcessBackend
from runs.protocols import Backend


def make_backend(config: Config) -> Backend:
    """Make what PI_BACKEND names; the engine is found by DOCKER_HOST and contacted by the first call."""
    match config.backend:
        case BackendKind.DOCKER:
            return Engine(environment=config.environment)
        case BackendKind.PROCESS:
            return ProcessBackend(config.state_dir / "processes")
        case _:
            assert_never(config.backend)
