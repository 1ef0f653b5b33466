"""Jobs of the real image: folders like the worker's, the product's own runner, a stub as the model."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from runs import exitline
from runs.abort import Abort
from runs.container import ContainerSpec, build_spec
from runs.exitline import ExitLine
from runs.exits import classify
from runs.outcome import Verdict
from runs.request import JobUser, RunRequest
from runs.result import RunResult
from runs.runner import Runner
from tests.harness.stub_model import StubModel
from tests.runs.jobs import exit_line

#: Who runs jobs in these tests: ourselves, or for root somebody whom neither the image nor the machine knows.
USER = JobUser(os.getuid() or 54321, os.getgid() or 54321)
#: Who the product makes of that: whoever has the uid of the image's own user is it.
MAPPED = JobUser(1001, 1001) if USER.uid == 1001 else USER


@dataclass(frozen=True, kw_only=True)
class Ended:
    """One job that has run: what the engine knew, what the runner said, what we make of it."""

    result: RunResult
    line: dict[str, Any]
    telemetry: ExitLine
    verdict: Verdict


@dataclass(kw_only=True)
class RealJob:
    """One job: put files into its folders, then `run` it."""

    folder: Path
    image: str
    host_id: str
    stub: StubModel
    key: str = field(default_factory=lambda: f"key-{secrets.token_hex(8)}")
    user: JobUser | None = USER
    #: Who owns the workspace; the user, if nobody else is named.
    owner: JobUser | None = None
    command: str | None = None
    max_turns: int = 10
    max_tokens: int | None = None
    #: From the moment that it is described; the worker's limit is longer.
    deadline: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        self.write("job/prompt.md", "Do the task.\n")
        self.write("overlay/models.json", self.stub.models_file(self.key))
        self.write("workspace/README.md", "A repository.\n")
        git = ["git", "-c", "init.defaultBranch=main", "-C", str(self.workspace)]
        subprocess.run([*git, "init", "--quiet"], check=True)

    @property
    def workspace(self) -> Path:
        """The repository that the job works in."""
        return self.folder / "workspace"

    def write(self, name: str, text: str) -> Path:
        """Put a file into one of `job`, `workspace`, `overlay`, `outbox`."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def extension(self, name: str, body: str) -> None:
        """Put a pi extension into the repository."""
        code = f"export default function (pi) {{\n{body}\n}}\n"
        self.write(f"workspace/.pi/extensions/{name}", code)

    def requests(self) -> list[dict[str, Any]]:
        """What this job has asked its model so far."""
        return self.stub.requests(self.key)

    def spec(self, model: str, extra: Mapping[str, str] | None = None) -> ContainerSpec:
        """Describe its container as the product does; `extra` variables are the test's own."""
        outbox = self.folder / "outbox"
        spec = build_spec(
            RunRequest(
                job_id=f"{self.host_id}-{secrets.token_hex(4)}",
                attempt=0,
                token=f"{self.host_id}-00000001/1",
                boot=f"{self.host_id}-00000001",
                host_id=self.host_id,
                kind="local",
                scope_hash=None,
                image=self.image,
                provider="stub",
                model=model,
                max_turns=self.max_turns,
                max_tokens=self.max_tokens,
                command=self.command,
                job_dir=self.folder / "job",
                workspace=self.workspace,
                outbox=outbox if outbox.exists() else None,
                global_pi_dir=self.folder / "overlay",
                user=self.user,
                deadline=datetime.now(UTC) + self.deadline,
            )
        )
        return replace(spec, environment={**spec.environment, **(extra or {})})

    def run(
        self,
        model: str,
        runner: Runner,
        *,
        abort: Abort | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run it to its end."""
        spec = self.spec(model, environment)
        self._give_to_the_user()
        result = runner.run(spec, abort=abort or Abort())
        telemetry = exitline.read(result.tail)
        return Ended(
            result=result,
            line=exit_line(result.tail),
            telemetry=telemetry,
            verdict=classify(result, telemetry),
        )

    def _give_to_the_user(self) -> None:
        # pytest's folders are closed to others; /job and the overlay are only read.
        for path in (self.folder / "job", self.folder / "overlay"):
            subprocess.run(["chmod", "-R", "a+rX", str(path)], check=True)
        owner = self.owner or self.user or JobUser(1001, 1001)
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", f"{owner.uid}:{owner.gid}", str(self.workspace)], check=True)
        elif self.user is None:
            subprocess.run(["chmod", "-R", "a+rwX", str(self.workspace)], check=True)
