"""What is said of a schedule whose last run was refused, was stopped or failed, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from dispatch.console.remedies import next_step
from dispatch.console.schedule_facts import LastRun
from dispatch.console.trigger_words import short
from runs import wording
from runs.outcome import Outcome, Reason

# They end a run that has begun.
_STOPPED = frozenset(
    {
        Reason.WORKER_ABORT,
        Reason.RUNNER_POLICY,
        Reason.DEADLINE,
        Reason.OPERATOR_CANCEL,
        Reason.OPERATOR_STOP,
    }
)
# What docs/operations.md says to do, where the reason's own sentence does not.
_MENDING: Mapping[str, str] = {
    Reason.PROVIDER_UNCONFIGURED: "Set its variable (such as ANTHROPIC_API_KEY) for the worker, restart it.",
    Reason.NOT_AVAILABLE: "Take the field that the log names out of the entry.",
    Reason.CONFIG_REFUSED: "`detail` of refused_config_refused in the worker's log says which; correct it.",
    Reason.JOB_USER_UNMAPPABLE: "Or run the worker as the user who owns the folder.",
    Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED: "Use the image of this version.",
    Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED: "Use the image of this version, or give the folder to uid 1001.",
    Reason.WAIT_UNANSWERABLE: "Run the check by hand.",
    Reason.STALLED: "Look at the folder first.",
    Reason.CONTAINER_NEVER_STARTED: "See the engine's own log.",
}


def is_bad(run: LastRun | None) -> bool:
    """Whether it is known that it did not come to its own end."""
    return run is not None and run.outcome in {Outcome.POLICY, Outcome.FAILED}


def brief(run: LastRun) -> str:
    """Say how it ended, in half a sentence."""
    how = "was stopped" if run.reason in _STOPPED else "was refused"
    if run.outcome == Outcome.FAILED:
        how = "failed"
    return f"its last run {how}{f', {short(run.reason)}' if run.reason else ''}"


def remedy(schedule_id: str, run: LastRun) -> str:
    """Say what it means and what to do."""
    said = wording.reason_sentence(run.reason) or f"See `manage.py logs {short(run.job_id)}`."
    mending = next_step(run.reason) or _MENDING.get(run.reason, "")
    again = f"`manage.py run --trigger {schedule_id}` tells at once whether that helped."
    return " ".join(filter(None, (said, mending, again)))
