"""Runs the check of one profile: one child process, its exit code, and nothing that it says (Q 9.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# Nothing that looks like an option, and nothing that no argument can hold: NUL, half a character.
_ARGUMENT = re.compile(r"[^-\0\ud800-\udfff][^\0\ud800-\udfff]*")


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
    stdout_bytes: int
    stderr_bytes: int


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
    """Run the check and wait for its end; raise nothing foreseeable; at most the timeout and 4 s.

    `argument` is one that `is_usable_argument` accepts. `stop` is asked at least every 50 ms and ends it.
    """
    raise NotImplementedError
