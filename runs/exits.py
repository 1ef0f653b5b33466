"""What an attempt's end means: outcome, reason, whether it is tried again, whether it is paid back (D7).

In this order: our own abort flag, then whether anything ran at all, then the exit code. `OOMKilled` counts
only together with 137, since it is also true when a mere child was killed and the job went on to succeed.
What the job printed can choose between labels that are not retried, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from runs.exitline import ExitLine
from runs.outcome import Outcome, Reason, Verdict
from runs.result import RunResult

#: Labels that the runner may choose within exit code 2; any other word stays `runner-policy`.
POLICY_LABELS: Mapping[str, Reason] = {Reason.DEADLINE.value: Reason.DEADLINE}

#: The runner's own words for how it ended (image/README.md). Only these are told to the operator: the line
#: is written by untrusted code, and anything else in it may be anything.
RUNNER_WORDS = frozenset(
    {
        *("provider-error", "no-result", "command-failed", "unknown-stop", "runner-fault", "turn-budget"),
        *("token-budget", "deadline", "terminated", "aborted", "provider-auth-refused", "config"),
        *("model-unknown", "provider-unconfigured", "command-unregistered", "home-unwritable"),
        *("mount-unreadable", "guardrails-missing", "persona-unreadable", "truncated"),
    }
)

#: Who stopped it, matched exactly; anybody else is the worker itself (its limit, its shutdown).
_STOPPED_BY: Mapping[str, Reason] = {
    Reason.OPERATOR_CANCEL.value: Reason.OPERATOR_CANCEL,
    Reason.OPERATOR_STOP.value: Reason.OPERATOR_STOP,
}

_KILLED = 137


def classify(result: RunResult, telemetry: ExitLine, *, asked: str | None = None) -> Verdict:
    """Judge one attempt. A refund needs that nothing ran: no exit code ever gives one.

    `asked` is who had asked it to stop by its end, also where it ended of something else first: what an
    operator has stopped is not tried again.
    """
    verdict = _judge(result, telemetry)
    reason = _STOPPED_BY.get(asked or "")
    if reason is None or not verdict.retry:
        return verdict
    return Verdict(outcome=Outcome.POLICY, reason=reason, refund=verdict.refund)


def _judge(result: RunResult, telemetry: ExitLine) -> Verdict:
    nothing_ran = result.not_attempted or result.never_started
    if result.abort_reason is not None:
        reason = _STOPPED_BY.get(result.abort_reason, Reason.WORKER_ABORT)
        return Verdict(outcome=Outcome.POLICY, reason=reason, refund=nothing_ran)
    if nothing_ran:
        return _infra(Reason.CONTAINER_NEVER_STARTED, refund=True)
    if result.detached or result.exit_code is None:
        return _infra(Reason.CONTAINER_DETACHED)
    return _by_code(result.exit_code, telemetry)


def ran_out_of_memory(result: RunResult) -> bool:
    """Whether the job itself was killed for its memory; for the log, the verdict is the one of 137."""
    return result.oom_killed and result.exit_code == _KILLED


def _by_code(code: int, telemetry: ExitLine) -> Verdict:
    if code == 0:
        return Verdict(outcome=Outcome.COMPLETED)
    if code == 2:
        label = POLICY_LABELS.get(telemetry.reason or "", Reason.RUNNER_POLICY)
        return Verdict(outcome=Outcome.POLICY, reason=label)
    # 1 says so itself; 125 to 127 are the process's own here; 137 and 143 without our flag came from outside.
    return _infra(None)


def _infra(reason: Reason | None, *, refund: bool = False) -> Verdict:
    return Verdict(outcome=Outcome.FAILED, reason=reason, retry=True, refund=refund)
