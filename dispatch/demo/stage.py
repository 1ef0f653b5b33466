"""The stage of the demo: a temporary state directory, and this product's own commands on it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dispatch.demo.interrupts import interrupts
from hosts.identity import host_id
from pidispatch_site import conf, embedded
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory
from runs.backends import make_backend
from runs.reaper import Reaper

PROVIDER, MODEL = "scripted", "scripted-agent"
FOLDER_PREFIX = "pi-demo-"
MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
_BOOT_SECONDS = 60
_STOP_SECONDS = 20
_PASSED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV"),
    *("DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo happens; everything of it lies below `folder`, which is removed with it."""

    folder: Path
    environment: Mapping[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def repository(self) -> Path:
        """The sample repository."""
        return self.folder / "sample"

    @property
    def state(self) -> Path:
        """The state directory."""
        return Path(self.environment.get("PI_STATE_DIR", self.folder / "state"))

    @property
    def logs(self) -> Path:
        """The records."""
        return self.state / "logs"

    @property
    def variables(self) -> Path:
        """The environment as a file, for a person's own commands on this stage (PI_ENV_FILE)."""
        return Path(self.environment["PI_ENV_FILE"])

    def host(self, name: str, changes: Mapping[str, str]) -> Stage:
        """Give one host of a fleet on this stage: a state directory and a file of variables of its own."""
        own = {
            "PI_WORKER_NAME": name,
            "PI_STATE_DIR": str(self.folder / name),
            "PI_ENV_FILE": str(self.folder / f"{name}.env"),
        }
        there = Stage(self.folder, {**self.environment, **changes, **own}, self.started)
        there.write_variables()
        return there

    def write_variables(self) -> None:
        """Write the file of variables."""
        ours = {name: text for name, text in self.environment.items() if name.startswith(("PI_", "VALKEY_"))}
        self.variables.touch(mode=0o600)
        lines = (f"{name}={text}\n" for name, text in ours.items() if name != "PI_ENV_FILE")
        self.variables.write_text("".join(lines))

    def command(self, *words: str) -> list[str]:
        """Spell one of the product's commands."""
        return [sys.executable, str(MANAGE), *words]

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
        """Run a command with its output where the person sees it; answer its exit code.

        In a session of its own: an interrupt at the terminal is for the demo, which ends what it started.
        """
        process = self._start(words)
        code = process.wait()
        self.started.remove(process)
        return code

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a command that stays; what it prints goes to `<name>.log`."""
        with self.log(name).open("ab") as output:
            return self._start(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def _start(self, words: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own and know of it, in one step."""
        with interrupts.held():
            process = subprocess.Popen(  # noqa: S603
                self.command(*words),
                env=dict(self.environment),
                cwd=self.folder,
                start_new_session=True,
                **streams,
            )
            self.started.append(process)
        return process

    def until_over(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Wait until a started command has ended; `OperationalError` with its log where it failed."""
        code = process.wait()
        self.started.remove(process)
        if code != 0:
            text = self.log(name).read_text(errors="replace")
            raise OperationalError(f"The {name} could not be made; it said:\n{text}")

    def log(self, name: str) -> Path:
        """Name the file with what a started command printed."""
        return self.folder / f"{name}.log"

    def until_logged(self, name: str, mark: str, process: subprocess.Popen[bytes]) -> None:
        """Wait until a started command has printed `mark`; `OperationalError` with its log otherwise."""
        deadline = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < deadline:
            ended = process.poll() is not None
            text = self.log(name).read_text(errors="replace")
            if mark in text:
                return
            if ended:
                break
            time.sleep(0.05)
        text = self.log(name).read_text(errors="replace")
        raise OperationalError(f"The {name} did not come up; it said:\n{text}")


@contextmanager
def set_up(
    environment: Mapping[str, str], *, backend: str, image: str | None, warn: Callable[[str], object]
) -> Iterator[Stage]:
    """Make the stage for as long as the block lasts; then end and remove whatever is left of it.

    A private folder, a closed environment, an overlay with the scripted provider. `warn` hears what could not
    be removed. A stage whose `folder` has a `kept.json` by then stays (see `kept`).
    """
    # A short path: a Unix socket's name ends at some hundred characters.
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    stage = Stage(folder, _environment(environment, folder, backend=backend, image=image))
    try:
        _furnish(stage)
        yield stage
    finally:
        interrupts.disregard()
        if not is_kept(folder):
            for process in reversed(stage.started):
                _end(process)
            tear_down(stage, warn=warn)


def is_kept(folder: Path) -> bool:
    """Whether somebody asked for this stage to stay."""
    return (folder / "kept.json").exists()


def tear_down(stage: Stage, *, warn: Callable[[str], object]) -> None:
    """End the embedded server, remove containers of a worker that could not, and the folder."""
    for step in (_stop_valkey, _reap):
        try:
            step(stage)
        except OperationalError as error:
            warn(str(error))
    with suppress(OSError):
        shutil.rmtree(stage.folder)
    if stage.folder.exists():
        warn(f"{stage.folder} could not be removed.")


def _stop_valkey(stage: Stage) -> None:
    state = StateDirectory(stage.state)
    # One that is just starting cannot be told to stop before it answers.
    if embedded.find(state, timeout_seconds=_BOOT_SECONDS):
        embedded.stop(state)


def _reap(stage: Stage) -> None:
    # One state directory, or one for each host of a fleet.
    for file in stage.folder.glob("*/host-id"):
        environment = {**stage.environment, "PI_STATE_DIR": str(file.parent)}
        backend = make_backend(conf.load(environment))
        Reaper(backend, host_id=host_id(file.parent), boot="").reap(is_live=lambda _: False)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that was started, by SIGTERM, and wait for it."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _environment(
    environment: Mapping[str, str], folder: Path, *, backend: str, image: str | None
) -> dict[str, str]:
    return {
        **{name: environment[name] for name in _PASSED if environment.get(name)},
        # The operator's own .env must not steer the demo.
        "PI_ENV_FILE": str(folder / "env"),
        "PI_STATE_DIR": str(folder / "state"),
        "VALKEY_URL": "embedded",
        "PI_BACKEND": backend,
        **({"PI_JOB_IMAGE": image} if image else {}),
        "PI_PROVIDER": PROVIDER,
        "PI_MODEL": MODEL,
        "PI_GLOBAL_PI_DIR": str(folder / "overlay"),
        "PI_EGRESS": "0",
        "PI_AUTH_FROM_PI": "0",
    }


def _furnish(stage: Stage) -> None:
    stage.write_variables()
    overlay = stage.folder / "overlay"
    overlay.mkdir()
    declared = {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "apiKey": "none-needed"}
    models = {"providers": {PROVIDER: {**declared, "models": [{"id": MODEL}]}}}
    (overlay / "models.json").write_text(json.dumps(models))
