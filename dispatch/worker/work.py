"""The edges to execution: what the ladder asks of `runs`, and what runs a container."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from dispatch.jobs import JobData, Kind
from runs.abort import Abort
from runs.container import ContainerSpec
from runs.outcome import Refusal
from runs.preflight import Images
from runs.provider import Credentials
from runs.result import RunResult
from runs.workspace.local import Prepared


class Runs(Protocol):
    """What runs a container: `runs.runner.Runner`, or the benchmarks' that runs nothing."""

    def run(
        self,
        spec: ContainerSpec,
        *,
        abort: Abort,
        time_limit: timedelta,
        raw_log: Path | None,
        on_gone: Callable[[str], None],
    ) -> RunResult:
        """Run it to its end; see `runs.runner.Runner.run`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaces:
    """Where inputs come from and raw output goes; `raw_log_of` answers None while capture is off."""

    global_pi_dir: Path | None
    global_allow_extensions: bool
    raw_log_of: Callable[[str], Path | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The edges to execution, each one call: what the ladder asks of `runs` and what runs the container.

    `kinds` are those of jobs that `prepare` can make a workspace for. `engine_is_clean` answers whether this
    boot has listed the engine's containers and removed what older boots left; it tries again when it has not.
    `flow_allows` answers whether a folder's commit lets a job start a flow; nothing allows it by default.
    """

    images: Images
    credentials_of: Callable[[str], Credentials | Refusal]
    prepare: Callable[[str, JobData], Prepared | Refusal]
    cleanup: Callable[[Prepared], None]
    engine_is_clean: Callable[[], bool]
    runs: Runs
    kinds: frozenset[Kind] = frozenset({Kind.LOCAL})
    flow_allows: Callable[[Path, str, str | None], bool] = lambda folder, flow, sha: False
