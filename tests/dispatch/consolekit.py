"""What the tests of commands share: `manage.py …` as a process, in a home and an environment of its own."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness import prepared
from tests.harness.valkey_server import ValkeyServer

ROOT = Path(__file__).resolve().parents[2]
MANAGE = (sys.executable, str(ROOT / "manage.py"))
# Where a client gets no answer at once: nobody listens on the first port.
NOBODY = "redis://127.0.0.1:1"


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said where."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def is_plain(self) -> bool:
        """Whether a person was spared the inside of the program."""
        return "Traceback" not in self.err and "Traceback" not in self.out


@dataclass
class Console:
    """A person at a shell: a home, a state directory, a server."""

    home: Path
    url: str = NOBODY
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.state.mkdir(mode=0o700, exist_ok=True)

    @property
    def state(self) -> Path:
        return self.home / "state"

    def environment(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        values: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PI_STATE_DIR": str(self.state),
            "PI_EGRESS": "0",
            "PI_WORKER_NAME": "here",
            "VALKEY_URL": self.url,
            **self.variables,
            **changes,
        }
        return {name: value for name, value in values.items() if value is not None}

    def run(
        self, *words: str | bytes, given: bytes = b"", humble: bool = False, **changes: str | None
    ) -> Said:
        """Run a command to its end; `changes` to the environment, None takes a variable out.

        `humble` takes away what lets root read everything.
        """
        began = time.monotonic()
        done = prepared.run(
            [*MANAGE, *words],
            given=given,
            env=self.environment(changes),
            cwd=self.home,
            timeout=60,
            preexec_fn=be_humble if humble else None,
        )
        return Said(done.returncode, _text(done.stdout), _text(done.stderr), time.monotonic() - began)

    @contextmanager
    def running(self, *words: str, **changes: str | None) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command in a session of its own, its output to be read; none outlives the block."""
        with prepared.Process(
            [*MANAGE, *words],
            env=self.environment(changes),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            # What hangs ends, so that the test that reads from it fails.
            watchdog = threading.Timer(60, process.kill)
            watchdog.start()
            try:
                yield process
            finally:
                watchdog.cancel()
                process.kill()


@dataclass(frozen=True, kw_only=True)
class Case:
    """One command of a table and what it must say: part of stderr, or of stdout where that is asked."""

    words: Sequence[str | bytes]
    code: int
    says: str
    out: str = ""
    given: bytes = b""
    humble: bool = False
    changes: Mapping[str, str | None] = field(default_factory=dict)


def run_all(console: Console, cases: Mapping[str, Case]) -> dict[str, Said]:
    """Run the table's commands side by side: most of their time is the start of Python."""

    def run(case: Case) -> Said:
        return console.run(*case.words, given=case.given, humble=case.humble, **case.changes)

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(cases, pool.map(run, cases.values()), strict=True))


@contextmanager
def own_server() -> Iterator[ValkeyServer]:
    """A server that a test may kill, started; its home has a short path."""
    home = Path(tempfile.mkdtemp(prefix="pd-con-"))
    server = ValkeyServer(home)
    server.start()
    try:
        yield server
    finally:
        server.close()
        shutil.rmtree(home)


def read_until(stream: Any, mark: str) -> str:
    """Read lines until one has the mark, and answer all of them; the end of the stream fails."""
    said = ""
    while mark not in said:
        line = stream.readline().decode()
        assert line, f"it ended without {mark!r}: {said}"
        said += line
    return said


def be_humble() -> None:
    """Take away, in a child before it becomes a program, what lets root read and write everything."""
    # PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH; an error, unheard, to everybody but root.
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
