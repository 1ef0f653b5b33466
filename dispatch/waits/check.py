"""Runs the check of one profile: one child process, its exit code, and nothing that it says (Q 9.3)."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dispatch.waits.child import Child, Cut

# Nothing that looks like an option, and nothing that no argument can hold: NUL, half a character.
_ARGUMENT = re.compile(r"[^-\0\ud800-\udfff][^\0\ud800-\udfff]*")
_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG})
_EXECUTE_BITS = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class Verdict(StrEnum):
    """What a check means for the job."""

    GO = "go"
    HOLD = "hold"
    REFUSE = "refuse"
    # It could not tell: held, and counted.
    FAULT = "fault"
    # Our own stop: held, and not counted.
    ABORTED = "aborted"
    # No executable file stands there: the profile is gone.
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of a check.

    `code` is its exit code, None when there is none of its own. `detail` is one of `exit` `not-yet` `spawn`
    `timeout` `aborted` `signal-<NAME>` `no-code`. The counts are bytes that it wrote while it ran.
    """

    verdict: Verdict
    code: int | None
    detail: str
    stdout_bytes: int = 0
    stderr_bytes: int = 0


# Of any other code nobody knows what it means: a fault.
_ANSWERS = {
    0: (Verdict.GO, "exit"),
    2: (Verdict.REFUSE, "exit"),
    3: (Verdict.HOLD, "not-yet"),
}
_CUTS = {Cut.ABORTED: Verdict.ABORTED, Cut.TIMEOUT: Verdict.FAULT}


def is_usable_argument(text: object) -> bool:
    """Tell whether a check can be given this target: some text that cannot be taken for an option."""
    return isinstance(text, str) and _ARGUMENT.fullmatch(text) is not None


def run_check(
    executable: Path,
    argument: str,
    *,
    environment: Mapping[str, str],
    timeout_ms: int,
    stop: Callable[[], bool],
) -> CheckResult:
    """Run the check and wait for its end: at most the timeout and 4 s. Raises nothing of its own.

    `argument` is one that `is_usable_argument` accepts. `stop` is asked at least every 50 ms and ends it.
    What a check leaves running in the background stays, without a reader of what it writes, and nothing waits
    for it; a check that we end is ended together with what it started.
    """
    if stop():
        return CheckResult(Verdict.ABORTED, None, Cut.ABORTED.value)
    try:
        program = _program(executable)
        if program is None:
            return CheckResult(Verdict.MISSING, None, "spawn")
        child = Child((str(executable), argument), program=program, environment=environment)
    except (OSError, ValueError):
        # No program, or its interpreter is none; being written just now; no room for another process.
        return CheckResult(Verdict.FAULT, None, "spawn")
    with child:
        cut = child.watch(timeout_ms / 1000, stop)
    verdict, code, detail = (_CUTS[cut], None, cut.value) if cut else _told(child.status)
    return CheckResult(verdict, code, detail, *child.written)


def _program(executable: Path) -> str | None:
    """Find the program that stands there now, any links followed; None if none may be executed."""
    try:
        program = os.path.realpath(executable, strict=True)
        mode = Path(program).stat().st_mode
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return None
        raise
    return program if stat.S_ISREG(mode) and mode & _EXECUTE_BITS else None


def _told(status: int | None) -> tuple[Verdict, int | None, str]:
    """Read how a check ended by itself."""
    if status is None:
        return Verdict.FAULT, None, "no-code"
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return Verdict.FAULT, None, f"signal-{_signal_name(-code)}"
    verdict, detail = _ANSWERS.get(code, (Verdict.FAULT, "exit"))
    return verdict, code, detail


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return str(number)
