"""The real worker as a child process: started, killed, frozen, asked to stop, and what it said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hosts.names import host_queue
from tests.harness import site_database
from tests.harness.knobs import Knobs
from tests.harness.prepared import Process

ROOT = Path(__file__).resolve().parents[2]
#: Stands for a model provider's key; it may be found in a job's container and nowhere else.
PROVIDER_KEY = "sk-canary-of-the-provider"


def until(holds: Callable[[], Any], *, seconds: float, what: str) -> None:
    """Wait until `holds` is true; AssertionError that names `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def start_all(workers: Sequence[WorkerProcess], knobs: Knobs) -> None:
    """Start them together, and wait until each says that it takes jobs."""
    said = [worker.said_so_far() for worker in workers]
    for worker in workers:
        worker.start(knobs, ready=False)
    for worker, so_far in zip(workers, said, strict=True):
        worker.until_said("worker_started", after=so_far)


class WorkerProcess:
    """One host's worker: its own state directory below `home`, as many processes after one another as asked.

    Its standard output goes to one file that all of them append to. `root` is where its program is: another
    version's, for a fleet that is being upgraded.
    """

    def __init__(
        self,
        home: Path,
        url: str,
        *,
        name: str,
        image: str,
        concurrency: int = 4,
        daily_cap: int = 100_000,
        environment: Mapping[str, str] | None = None,
        root: Path = ROOT,
    ) -> None:
        self.home = home
        self._root = root
        # Another version may stand on other libraries.
        self._started_by = Process if root == ROOT else subprocess.Popen
        self.name = name
        self.state_dir = home / "state"
        self.starts = 0
        home.mkdir(parents=True, exist_ok=True)
        self.state_dir.mkdir(mode=0o700, exist_ok=True)
        (home / "env").touch()
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {
            **{key: os.environ[key] for key in ("PATH", "DOCKER_HOST") if key in os.environ},
            "HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "pidispatch_site.settings",
            "PI_ENV_FILE": str(home / "env"),
            "PI_STATE_DIR": str(self.state_dir),
            "PI_WORKER_NAME": name,
            "PI_EGRESS": "0",
            "PI_AUTH_FROM_PI": "0",
            "ANTHROPIC_API_KEY": PROVIDER_KEY,
            "VALKEY_URL": url,
            "PI_JOB_IMAGE": image,
            "PI_CONCURRENCY": str(concurrency),
            "PI_DAILY_CAP": str(daily_cap),
            **site_database.variables(),
            **(environment or {}),
        }

    @property
    def environment(self) -> Mapping[str, str]:
        """What it is configured by; the commands of its host run with the same."""
        return self._environment

    @property
    def queue(self) -> str:
        """Its own queue."""
        return host_queue(self.name)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        assert self._process is not None
        return self._process.poll()

    @property
    def host_id(self) -> str | None:
        """The id of its state directory, once it has one."""
        path = self.state_dir / "host-id"
        return path.read_text().strip() if path.exists() else None

    def start(self, knobs: Knobs | str, *, ready: bool = True) -> None:
        """Start a process; with `ready` wait until it says that it takes jobs. Text is another version's."""
        assert self._process is None or self._process.poll() is not None
        said = self._out.stat().st_size if self._out.exists() else 0
        with self._out.open("ab") as out, (self.home / "stderr.log").open("ab") as err:
            self._process = self._started_by(
                [
                    *(sys.executable, "-m", "tests.harness.worker_main"),
                    knobs if isinstance(knobs, str) else knobs.to_json(),
                ],
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.starts += 1
        if ready:
            self.until_said("worker_started", after=said)

    def until_said(self, name: str, *, after: int = 0, seconds: float = 20, **fields: Any) -> None:
        """Wait until it logs this event (beyond the first `after` bytes of its log)."""

        def said() -> bool:
            assert name == "worker_stopped" or self.returncode is None, self.complaint()
            return any(
                event["event"] == name and fields.items() <= event.items() for event in self.events(after)
            )

        until(said, seconds=seconds, what=f"{self.name} says {name}")

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """What its processes have logged; a line that a kill has cut is left out."""
        if not self._out.exists():
            return []
        with self._out.open("rb") as file:
            file.seek(after)
            return [event for line in file if (event := _event(line)) is not None]

    def said_so_far(self) -> int:
        """The length of its log, for `events(after=…)`."""
        return self._out.stat().st_size if self._out.exists() else 0

    def complaint(self) -> str:
        """What it wrote to standard error, for an assertion."""
        path = self.home / "stderr.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def kill(self) -> None:
        """SIGKILL, also when it is frozen."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=10)

    def freeze(self) -> None:
        """SIGSTOP, and wait until it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", seconds=20, what="SIGSTOP")

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """SIGTERM, without waiting."""
        os.kill(self.pid, signal.SIGTERM)

    def terminate(self, *, seconds: float = 20) -> int:
        """SIGTERM, and its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=seconds)

    def wait(self, *, seconds: float) -> int:
        """Wait until it has ended by itself, and answer its exit code."""
        assert self._process is not None
        return self._process.wait(timeout=seconds)

    def memory(self, field: str = "VmRSS") -> float:
        """Its resident memory in MiB; `VmHWM` is the highest it ever was."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        raise AssertionError(f"the system does not tell {field}")

    def forget_peak(self) -> None:
        """Have `VmHWM` begin anew from what it holds now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def _out(self) -> Path:
        return self.home / "stdout.log"


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None
