"""The stage of the demo: a temporary state directory, and this product's own commands on it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pidispatch_site.errors import OperationalError

PROVIDER, MODEL = "scripted", "scripted-agent"
_MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
_BOOT_SECONDS = 30
_STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo happens; everything of it lies below `folder`, which is removed with it."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def repository(self) -> Path:
        """The sample repository."""
        return self.folder / "sample"

    @property
    def logs(self) -> Path:
        """The records."""
        return self.folder / "state" / "logs"

    def command(self, *words: str) -> list[str]:
        """Spell one of the product's commands."""
        return [sys.executable, str(_MANAGE), *words]

    def call(self, *words: str) -> str:
        """Run a command to its end and answer what it printed; `OperationalError` when it fails."""
        done = subprocess.run(  # noqa: S603 - this product's own commands
            self.command(*words), env=dict(self.environment), cwd=self.folder, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise OperationalError(
                f"manage.py {words[0]} failed: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout

    def show(self, *words: str) -> int:
        """Run a command with its output where the person sees it; answer its exit code."""
        return subprocess.run(  # noqa: S603
            self.command(*words), env=dict(self.environment), cwd=self.folder
        ).returncode

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a command that stays; what it prints goes to `<name>.log`."""
        with (self.folder / f"{name}.log").open("ab") as output:
            return subprocess.Popen(  # noqa: S603
                self.command(*words),
                env=dict(self.environment),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def until_logged(self, name: str, mark: str, process: subprocess.Popen[bytes]) -> None:
        """Wait until a started command has printed `mark`; `OperationalError` with its log otherwise."""
        log, deadline = self.folder / f"{name}.log", time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < deadline:
            text = log.read_text(errors="replace")
            if mark in text:
                return
            if process.poll() is not None:
                break
            time.sleep(0.05)
        raise OperationalError(f"the {name} did not come up; it said:\n{log.read_text(errors='replace')}")


def set_up(environment: Mapping[str, str], *, backend: str, image: str | None) -> Stage:
    """Make the stage: a private folder, a closed environment, an overlay with the scripted provider."""
    # A short path: a Unix socket's name ends at some hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="pi-demo-"))
    overlay = folder / "overlay"
    overlay.mkdir()
    no_variables = folder / "env"
    no_variables.touch(mode=0o600)
    declared = {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "apiKey": "none-needed"}
    models = {"providers": {PROVIDER: {**declared, "models": [{"id": MODEL}]}}}
    (overlay / "models.json").write_text(json.dumps(models))
    passed = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "DOCKER_HOST",
        "DOCKER_CERT_PATH",
        "DOCKER_TLS_VERIFY",
        "VIRTUAL_ENV",
    )
    return Stage(
        folder=folder,
        environment={
            **{name: environment[name] for name in passed if environment.get(name)},
            # The operator's own .env must not steer the demo.
            "PI_ENV_FILE": str(no_variables),
            "PI_STATE_DIR": str(folder / "state"),
            "VALKEY_URL": "embedded",
            "PI_BACKEND": backend,
            **({"PI_JOB_IMAGE": image} if image else {}),
            "PI_PROVIDER": PROVIDER,
            "PI_MODEL": MODEL,
            "PI_GLOBAL_PI_DIR": str(overlay),
            "PI_EGRESS": "0",
            "PI_AUTH_FROM_PI": "0",
        },
    )


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a command that was started, by SIGTERM, and wait for it."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tear_down(stage: Stage, *, warn: Callable[[str], object]) -> None:
    """End the embedded server and remove the folder; says what could not be done."""
    try:
        stage.call("valkey", "stop")
    except OperationalError as error:
        warn(str(error))
    with suppress(OSError):
        shutil.rmtree(stage.folder)
    if stage.folder.exists():
        warn(f"{stage.folder} could not be removed.")
