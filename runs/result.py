"""What one call of the runner found out: facts for `runs.exits` to judge, never a judgement.

How to read it, first match wins: `not_attempted` and `never_started` (nothing ran, the reservation is paid
back), `abort_reason` (we stopped it), `detached` (we lost it), then `exit_code` with `oom_killed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

TAIL_BYTES = 8192
"""How much of a container's output is kept in memory, at most (E 1.8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """One attempt of one container, as far as the engine and our own clock know it.

    `exit_code` is None when no container of this attempt ended before our eyes. `abort_reason` is None when
    we did not ask it to stop; else `timeout`, or what `Abort.set` was given: `shutdown`, `operator-cancel`,
    `operator-stop`, `switch`. `oom_killed` is the engine's word: it is also true when only a child was
    killed, so it counts together with 137 only.

    `not_attempted`: the abort flag was up before create was asked for (contracts 4, refund c; `abort_reason`
    says which). `never_started`: the engine answered create or start with an error, or could not be reached
    at all, or confirmed afterwards that nothing exists or that it removed a container still in `created`
    (refund a and b). `detached`: it had started, and somebody else removed it before its code was read.
    An abort between create and start has neither: no exit code, an `abort_reason`, no refund.

    `gone` tells that the engine confirmed the removal; when false the reaper removes it. `started_at` and
    `ended_at` are this host's clock (UTC); None when it never started. `tail` is the end of stdout and
    stderr, at most `TAIL_BYTES`; empty when the engine did not give it. `fault` is a token for the log, the
    kind of engine trouble behind `never_started`.
    """

    container: str
    container_id: str | None = None
    exit_code: int | None = None
    abort_reason: str | None = None
    oom_killed: bool = False
    not_attempted: bool = False
    never_started: bool = False
    detached: bool = False
    gone: bool = True
    started_at: datetime | None = None
    ended_at: datetime | None = None
    tail: bytes = field(default=b"", repr=False)
    log_truncated: bool = False
    fault: str | None = None
