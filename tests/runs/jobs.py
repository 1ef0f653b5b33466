"""Jobs for the fake runner: a folder with orders, and the container that works in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runs import labels
from runs.container import ContainerSpec, Mount
from runs.protocols import Backend


@dataclass(kw_only=True)
class Jobs:
    """Jobs of one test: all of one host-id, each with a folder below `folder`."""

    folder: Path
    image: str
    host_id: str
    boot: str = field(init=False)

    def __post_init__(self) -> None:
        self.boot = f"{self.host_id}-00000001"

    def workspace(self, job: str) -> Path:
        """Where the job of this name works."""
        return self.folder / job / "workspace"

    def spec(
        self,
        job: str = "one",
        orders: Mapping[str, str] | None = None,
        *,
        boot: str | None = None,
        token: str | None = None,
        environment: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> ContainerSpec:
        """Describe the container of a job that follows `orders` (see image/fake/README.md)."""
        job_dir, workspace = self.folder / job / "job", self.workspace(job)
        (workspace / ".fake").mkdir(parents=True, exist_ok=True)
        job_dir.mkdir(exist_ok=True)
        (job_dir / "prompt.md").write_text("Do as you are told.\n")
        # pytest's own folders are closed to others; the job is user 1001.
        for folder in (workspace, workspace / ".fake"):
            folder.chmod(0o777)
        for order, value in (orders or {}).items():
            (workspace / ".fake" / order).write_text(value)
            (workspace / ".fake" / order).chmod(0o666)
        boot = boot or self.boot
        name = name or f"pi-job-{self.host_id}-{job}"
        return ContainerSpec(
            name=name,
            image=self.image,
            environment={"PI_JOB_ID": name, **(environment or {})},
            mounts=(
                Mount(source=str(job_dir), target="/job", read_only=True),
                Mount(source=str(workspace), target="/workspace", read_only=False),
            ),
            labels={
                labels.HOST: self.host_id,
                labels.BOOT: boot,
                labels.JOB: job,
                labels.ATTEMPT: token or f"{boot}/1",
                labels.SCOPE: f"scope-{job}",
            },
            user=None,
        )

    def has_said_something(self, backend: Backend, container: str) -> bool:
        """Whether the container has come to its first line: SIGTERM finds its handler from then on."""
        return backend.tail(container) != b""

    def prints(self, spec: ContainerSpec, engine: Any) -> bool:
        """Whether the container has come to its first line: it runs, and SIGTERM finds its handler."""
        return engine.api.containers(filters={"name": f"^/{spec.name}$"}) != [] and bool(
            engine.api.logs(spec.name)
        )


def exit_line(tail: bytes) -> dict[str, Any]:
    """Read the last line of an output that has one."""
    return json.loads(tail.decode().rstrip("\n").rsplit("\n", 1)[-1])


def until(holds: Callable[[], Any], *, seconds: float = 10.0) -> None:
    """Wait until `holds` is true; AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.02)
