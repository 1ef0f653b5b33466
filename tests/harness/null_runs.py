"""A worker without containers: what stands in for the engine, the git workspace and the container's run.

Ladder, queue, money, records and rows stay real. Used where a test is about those, and by the benchmarks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dispatch.jobs import JobData
from runs.abort import Abort
from runs.container import ContainerSpec
from runs.protocols import (
    Changes,
    ContainerFacts,
    EngineNotFoundError,
    EngineSilentError,
    ImageFacts,
    NetworkFacts,
    Output,
)
from runs.result import RunResult
from runs.workspace.local import Prepared

IMAGE = "null:latest"
_FACTS = ImageFacts(
    id="sha256:" + "0" * 64,
    pi_version="null",
    forges=None,
    capabilities=frozenset({"commands", "replicas", "anyUid"}),
    user="1001",
)


class NullBackend:
    """An engine that has one image, no containers and no news."""

    def image(self, reference: str) -> ImageFacts | None:
        return _FACTS if reference == IMAGE else None

    def create(self, spec: ContainerSpec) -> str:
        raise AssertionError(f"a container {spec.name} without an engine")

    def start(self, container: str) -> None:
        raise EngineNotFoundError(container)

    def inspect(self, container: str) -> ContainerFacts:
        raise EngineNotFoundError(container)

    def listing(self, labels: Mapping[str, str]) -> list[ContainerFacts]:
        del labels
        return []

    def changes(self, labels: Mapping[str, str]) -> Changes:
        raise EngineSilentError("no-news")

    def tail(self, container: str) -> bytes:
        raise EngineNotFoundError(container)

    def follow(self, container: str) -> Output:
        raise EngineNotFoundError(container)

    def stop(self, container: str, *, grace_seconds: int) -> None:
        del container, grace_seconds

    def discard(self, container: str) -> bool:
        del container
        return True

    def remove(self, container: str) -> None:
        del container

    def networks(self, labels: Mapping[str, str]) -> list[NetworkFacts]:
        del labels
        return []

    def remove_network(self, network: str) -> None:
        del network


class NullRuns:
    """Runs nothing and says that it went well.

    With `orders` it follows those of the fake runner that need no container: `journal`, `delay`, `exit-line`,
    `exit-code` of the folder that would be mounted at /workspace (see image/fake/README.md).
    """

    def __init__(self, *, orders: bool = False) -> None:
        self._orders = orders

    def run(
        self,
        spec: ContainerSpec,
        *,
        abort: Abort,
        time_limit: timedelta,
        raw_log: Path | None,
        on_gone: Callable[[str], None],
    ) -> RunResult:
        del time_limit
        started_at = datetime.now(UTC)
        code = self._follow(spec, abort, raw_log) if self._orders else 0
        # As the runner has it: what the caller makes of the news must not cost it the result.
        with suppress(Exception):
            on_gone(spec.name)
        return RunResult(
            container=spec.name,
            exit_code=None if abort.is_set() else code,
            abort_reason=abort.reason,
            started_at=started_at,
            ended_at=datetime.now(UTC),
        )

    def _follow(self, spec: ContainerSpec, abort: Abort, raw_log: Path | None) -> int:
        workspace = next(mount.source for mount in spec.mounts if mount.target == "/workspace")
        orders = Path(workspace) / ".fake"
        _journal(orders, "begin", spec.name)
        abort.wait(float(_order(orders / "delay")))
        _journal(orders, "end", spec.name)
        if raw_log is not None and (orders / "exit-line").exists():
            raw_log.parent.mkdir(mode=0o700, exist_ok=True)
            raw_log.write_text((orders / "exit-line").read_text())
        return int(_order(orders / "exit-code"))


def null_prepare(_: str, job: JobData) -> Prepared:
    """Prepare nothing: the folder itself, as it is. There is no job directory to be removed afterwards."""
    nowhere = Path("/nonexistent/pi-dispatch")
    return Prepared(
        job_dir=nowhere, workspace=Path(job.folder or "/"), outbox=nowhere / "outbox", sha=None, user=None
    )


def _order(path: Path) -> str:
    try:
        return path.read_text().strip() or "0"
    except FileNotFoundError:
        return "0"


def _journal(orders: Path, word: str, name: str) -> None:
    if (orders / "journal").exists():
        line = f"{word} {name} {time.clock_gettime(time.CLOCK_BOOTTIME):.2f}\n"
        descriptor = os.open(orders / "journal", os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, line.encode())
        os.close(descriptor)
