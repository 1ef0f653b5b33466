"""Processes of Python that need not begin from nothing: most of a command's time is the import of libraries.

`Process` is a `subprocess.Popen`, and `run` a `subprocess.run`. Where a test starts `python script …` or
`python -m module …` with it, a process that has imported the libraries once forks a child for it
(`tests.harness.prepared_main`); what the child does from there on, beginning with our own modules and
Django's settings, is what it would have done. Everything else is started as ever: what only an `exec` gives,
what is not started by a test (a soak, a bench), and the tests in `_PROVE_THE_START`.
"""

from __future__ import annotations

import atexit
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: They are about how a process starts, and how it hears of signals: each gets a Python of its own.
_PROVE_THE_START = (
    "tests/test_manage.py",
    "tests/pidispatch_site/",
    "tests/dispatch/test_command_runworker.py",
    "tests/acceptance/test_shutdown.py",
)
#: What Python and its libraries read as they start.
_FOR_THE_START = ("PYTHON", "LD_", "LC_", "LANG", "GLIBC_", "MALLOC_", "OPENSSL_", "RQ_")
#: What a child gets from the thread that starts it, and cannot be told.
_STANDING = ("Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Seccomp:", "Cap", "SigBlk:", "SigIgn:")
_PROGRAM = Path(__file__).with_name("prepared_main.py")
_LARGEST = 60_000
_EXECUTE = inspect.signature(subprocess.Popen._execute_child)


class Process(subprocess.Popen[Any]):
    """A process of Python, from one that is prepared where that makes no difference."""

    _reports: socket.socket | None = None

    def _execute_child(self, *given: Any) -> None:
        how = _EXECUTE.bind(self, *given).arguments
        request = _request(how)
        if request is None:
            super()._execute_child(*given)
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            streams = [
                number if number != -1 else inherited
                for inherited, number in enumerate((how["p2cread"], how["c2pwrite"], how["errwrite"]))
            ]
            socket.send_fds(_prepared.requests(), [request], [*streams, theirs.fileno()])
        self._reports = ours
        self.pid = _report(ours)["pid"]
        self._child_created = True
        self._close_pipe_fds(
            *(how[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"))
        )

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._reports is None:
            return super()._internal_poll(*given, **named)
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._reports is None:
            return super()._try_wait(wait_flags)
        try:
            status = _report(self._reports, socket.MSG_DONTWAIT if wait_flags & os.WNOHANG else 0)["status"]
        except BlockingIOError:
            return 0, 0
        self._reports.close()
        return self.pid, status


def run(
    words: Sequence[str | bytes], *, timeout: float, given: bytes | None = None, **how: Any
) -> subprocess.CompletedProcess[Any]:
    """Run it to its end; what it wrote. It is killed when it takes longer than that."""
    stdin = None if given is None else subprocess.PIPE
    with Process(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


class _Prepared:
    """The one process that this one has; it is started for the first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: socket.socket | None = None
        self._standing: Sequence[str] = ()

    def is_fit(self) -> bool:
        """Whether what it starts stands as what this thread starts."""
        with self._lock:
            if self._requests is None:
                self._standing = _standing("self")
            return _standing("thread-self") == self._standing

    def requests(self) -> socket.socket:
        """Where it listens."""
        with self._lock:
            if self._requests is None:
                self._requests = self._start()
            return self._requests

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, str(_PROGRAM), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

        def end() -> None:
            ours.close()
            process.wait(timeout=10)

        atexit.register(end)
        return ours


_prepared = _Prepared()


def _request(how: Mapping[str, Any]) -> bytes | None:
    """What to ask for; None where it must be an `exec`."""
    words = [os.fsdecode(word) for word in how["args"]]
    given = os.environ if how["env"] is None else how["env"]
    environment = {os.fsdecode(key): os.fsdecode(value) for key, value in given.items()}
    asked = json.dumps(
        {
            "words": words[1:],
            "environment": environment,
            "folder": os.fsdecode(how["cwd"] or Path.cwd()),
            "umask": _umask(),
            "has_session": how["start_new_session"],
        }
    ).encode()
    holds = (
        hasattr(os, "pidfd_open")
        and words[0] == sys.executable
        and (words[1].endswith(".py") or words[1] == "-m")
        and how["preexec_fn"] is None
        and not any(name.startswith(_FOR_THE_START) for name in environment)
        and len(asked) < _LARGEST
        and _is_for_a_test()
        and _prepared.is_fit()
    )
    return asked if holds else None


def _is_for_a_test() -> bool:
    """Whether a test is running, and none that proves the start."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    return test != "" and not test.startswith(_PROVE_THE_START)


def _standing(task: str) -> Sequence[str]:
    lines = Path(f"/proc/{task}/status").read_text().splitlines()
    return [*(line for line in lines if line.startswith(_STANDING)), Path("/proc/self/limits").read_text()]


def _umask() -> int:
    """Read it without setting it: that would be for all threads."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)


def _report(reports: socket.socket, flags: int = 0) -> dict[str, int]:
    message = reports.recv(1000, flags)
    if not message:
        raise ChildProcessError("the prepared process is gone")
    report: dict[str, int] = json.loads(message)
    return report
