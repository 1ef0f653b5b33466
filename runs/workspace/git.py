"""Runs git in a repository that we do not trust (E 3.3, 9.4 row 34).

Nothing that a repository holds starts a program, opens a connection or writes a file.

Two rules stand beside the switches below. Only commands that read objects and references run on a
repository's own configuration; what compares files runs on a configuration of ours (`dirty`). And no path
stands in an argument list (D17): folders are given by `cwd` and the environment.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from runs.outcome import InfraFault
from runs.workspace.jobuser import Account

# Command-line settings win over every file, and git hands them on to any git it starts itself.
_SWITCHES = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=false",
    "core.sshCommand=false",
    "core.askPass=",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "protocol.ext.allow=never",
    "safe.directory=*",
)

_ENVIRONMENT = {
    "PATH": os.defpath,
    # A value, because `~/x` in a repository's configuration is fatal to git without one.
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    # An empty list: no transport at all. A missing object of a partial clone would else be fetched.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    # The folder's own `.git`, never one of a folder above it. Named outright, git asks nothing about owners.
    "GIT_DIR": ".git",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    # Set and empty: of `core.gitProxy` the first value wins, so no switch can override a repository's.
    "GIT_PROXY_COMMAND": "",
    "GIT_TERMINAL_PROMPT": "0",
}

_ERROR_TEXT_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
# How long a killed git may take to go; one that hangs in the kernel (a dead network disk) is left behind.
_LAST_BREATH_SECONDS = 5.0


class GitOutputTooLargeError(InfraFault):
    """Git printed more than the bound; the same command will again."""

    def __init__(self) -> None:
        super().__init__(detail="git-output-too-large")


class GitTimeoutError(InfraFault):
    """Git gave no answer in time; it may have been waiting for something that the repository holds."""

    def __init__(self) -> None:
        super().__init__(detail="git-timeout")


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """An exit code that git chose itself, and what it printed; `errors` is cut at 64 KiB."""

    code: int
    output: bytes
    errors: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Starts git as `account` (None = as this process), each call bounded in time and output. Thread-safe."""

    program: str = "git"
    account: Account | None = None
    time_limit: timedelta = timedelta(seconds=20)
    output_limit_bytes: int = 16 * 1024 * 1024

    def as_account(self, account: Account | None) -> Git:
        """Return the same, run as somebody else; needs root unless None."""
        return replace(self, account=account)

    def within(self, time_limit: timedelta) -> Git:
        """Return the same with another time limit."""
        return replace(self, time_limit=time_limit)

    def ask(
        self, *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None, given: bytes = b""
    ) -> GitAnswer:
        """Run one command in `cwd` with `given` on its stdin and wait for its answer.

        `environment` adds to the closed one. Raises `InfraFault` when there is no answer: git missing or not
        startable, killed, too slow; `GitOutputTooLargeError` when it says too much.
        """
        with _stdin(given) as stdin:
            process = self._start(arguments, cwd, {**_ENVIRONMENT, **(environment or {})}, stdin)
            try:
                output, errors = self._collect(process)
            except BaseException:
                _kill_group(process)
                raise
        if process.returncode < 0:
            raise InfraFault(detail="git-killed")
        return GitAnswer(process.returncode, output, errors)

    def tell(
        self, *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None, given: bytes = b""
    ) -> bytes:
        """`ask` for what must succeed: the output; any other exit code is an `InfraFault`.

        Git's codes do not tell a broken repository from a broken disk.
        """
        answer = self.ask(*arguments, cwd=cwd, environment=environment, given=given)
        if answer.code != 0:
            raise InfraFault(detail=f"git-{arguments[0]}-failed")
        return answer.output

    def _start(
        self, arguments: tuple[str, ...], cwd: Path, environment: Mapping[str, str], stdin: BinaryIO | int
    ) -> subprocess.Popen[bytes]:
        program = shutil.which(self.program)
        if program is None:
            raise InfraFault(detail="git-missing")
        switches = [part for switch in _SWITCHES for part in ("-c", switch)]
        account = self.account
        try:
            return subprocess.Popen(  # noqa: S603 - an argument list, no shell
                [program, *switches, "--no-pager", *arguments],
                cwd=cwd,
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )
        except (OSError, subprocess.SubprocessError) as fault:
            raise InfraFault(detail="git-unstartable") from fault

    def _collect(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        """Read both streams to their end, then wait; raises at the first bound that is passed."""
        if process.stdout is None or process.stderr is None:  # pragma: no cover - both are PIPE above
            raise InfraFault(detail="git-unstartable")
        deadline = time.monotonic() + self.time_limit.total_seconds()
        output, errors = bytearray(), bytearray()
        with process.stdout, process.stderr, selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, output)
            selector.register(process.stderr, selectors.EVENT_READ, errors)
            while selector.get_map():
                for key, _ in selector.select(_left(deadline)):
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    key.data.extend(chunk)
                del errors[_ERROR_TEXT_BYTES:]
                if len(output) > self.output_limit_bytes:
                    raise GitOutputTooLargeError
        try:
            process.wait(_left(deadline))
        except subprocess.TimeoutExpired as fault:
            raise GitTimeoutError from fault
        return bytes(output), bytes(errors)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise GitTimeoutError
    return left


@contextlib.contextmanager
def _stdin(given: bytes) -> Iterator[BinaryIO | int]:
    """Open a stdin that holds `given`: a file and not a pipe, so that nobody can block on it."""
    if not given:
        yield subprocess.DEVNULL
        return
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - what happens in the `with` is not its own fault
        file.write(given)
        file.seek(0)
    except OSError as fault:
        raise InfraFault(detail="git-unstartable") from fault
    with file:
        yield file


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End git and whatever it started; the leader is not reaped before, so its group is still its own."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_LAST_BREATH_SECONDS)
