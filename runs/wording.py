"""What the words and figures of a record mean to a person; pages show these sentences beside the token."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from runs.outcome import Outcome, Reason

ABSENT = "—"

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.COMPLETED: "Completed",
    Outcome.POLICY: "Policy",
    Outcome.FAILED: "Failed",
}

OUTCOME_SENTENCES: Mapping[Outcome, str] = {
    Outcome.COMPLETED: "The agent ran and came to an end, which may be that it could not do the task.",
    Outcome.POLICY: "A rule said no, or we stopped it. It is not tried again.",
    Outcome.FAILED: "It could not run, or nobody can tell how it ended.",
}

REASONS: Mapping[Reason, str] = {
    Reason.JOB_MALFORMED: "What stood in the queue is not a job of this version.",
    Reason.NOT_AVAILABLE: "It asks for a part that this version does not have.",
    Reason.JOB_IMAGE_MISSING: "The job image is not on the host; none is pulled. `make image` builds ours.",
    Reason.JOB_IMAGE_FORGE_UNSUPPORTED: "The image does not support this forge.",
    Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED: "The image does not support replicas.",
    Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED: "The image does not support commands.",
    Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED: "The image cannot run as another user than its own.",
    Reason.JOB_USER_UNMAPPABLE: "No ordinary user could own the job's files: the folder's owner or group is"
    " root (`chown -R USER:GROUP` it), the worker's group is, or the image runs as root.",
    Reason.PROVIDER_UNCONFIGURED: "The host has no credential for the model's provider.",
    Reason.CONFIG_REFUSED: "The job's folder, image or settings cannot be used as they are: see the log.",
    Reason.PI_TOO_MANY_FILES: "The repository's .pi folder has too many files.",
    Reason.PI_FILE_TOO_LARGE: "A file in the repository's .pi folder is too large.",
    Reason.PI_TOO_LARGE: "The repository's .pi folder is too large.",
    Reason.PI_PATH_COLLISION: "Two paths in the repository's .pi folder collide.",
    Reason.SETTINGS_OVERLAY_INVALID: "The host's settings file is not valid: see `manage.py settings`.",
    Reason.WAIT_SUPERSEDED: "Another job waits, or has waited, for the same thing in its place.",
    Reason.WAIT_EXPIRED: "What it waited for did not come in time.",
    Reason.WAIT_UNREADABLE: "The worker cannot read what it should wait for; a newer version may have asked.",
    Reason.WAIT_PROFILE_UNKNOWN: "It waits for a check that this host does not declare (PI_WAIT_PROFILES), or"
    " whose program is missing or not executable.",
    Reason.WAIT_AFTER_BEYOND_MAX: "It should start later than PI_WAIT_AFTER_MAX_MS allows.",
    Reason.WAIT_REFUSED: "The check that it waited for said that it will never be time.",
    Reason.WAIT_UNANSWERABLE: "The check that it waited for failed too often in a row.",
    Reason.ONCE_ALREADY_SPENT: "The trigger starts one job, and another job was that one.",
    Reason.DAILY_TOKEN_CAP: "The day's cap on tokens was reached.",
    Reason.OVER_BUDGET: "The cap on job starts was reached.",
    Reason.SOFT_HOLD: "The last starts before the cap are held back.",
    Reason.SCOPE_CAP: "The cap of this repository or folder was reached.",
    Reason.WORKER_ABORT: "The worker stopped it: at its time limit, or because the worker itself stopped.",
    Reason.RUNNER_POLICY: "The runner ended it: a budget, or a refused credential, model or command.",
    Reason.DEADLINE: "It reached its deadline and ended itself.",
    Reason.OPERATOR_CANCEL: "An operator cancelled it.",
    Reason.OPERATOR_STOP: "An operator stopped all running jobs.",
    Reason.CONTAINER_NEVER_STARTED: "The container engine refused to create or start the container.",
    Reason.CONTAINER_DETACHED: "The worker lost sight of the container and removed it.",
    Reason.STALLED: "Its worker vanished while it ran; it is never run again by itself.",
    Reason.WORKER_LOST: "Workers vanished with it in hand too often, before it ever started.",
}

# What the ids of a schedule's jobs begin with (`dispatch.ids`), and what that says.
OF_SCHEDULES: Mapping[str, str] = {"repeat": "", "manual": "started by hand"}

_GONE = (
    "Its data are gone: a job's id and data are kept for a day after it completed or was refused, and for"
    " seven days after it failed."
)
_ANEW = "Run it anew with `manage.py run`."
_ANEW_OF_SCHEDULE = (
    "Start its schedule anew, if that is still there: “Run now” among the schedules, or `manage.py run"
    " --trigger ID`."
)

_EXIT_CODES = {
    0: "ended by itself",
    1: "trouble outside the agent",
    2: "refused by the runner",
    137: "killed",
    143: "terminated",
}


# Whatever the container then ended with, it was told to.
_STOPPED = frozenset({Reason.OPERATOR_CANCEL, Reason.OPERATOR_STOP, Reason.WORKER_ABORT})


def outcome_name(outcome: str) -> str:
    """Name an outcome; a word of a later version names itself."""
    return OUTCOMES[Outcome(outcome)] if outcome in set(Outcome) else outcome


def outcome_sentence(outcome: str) -> str:
    """Explain an outcome."""
    return OUTCOME_SENTENCES[Outcome(outcome)] if outcome in set(Outcome) else ""


def reason_sentence(reason: str | None) -> str:
    """Explain a reason; a word of a later version has no explanation here."""
    return REASONS.get(Reason(reason), "") if reason in set(Reason) else ""


def data_gone(job_id: str) -> str:
    """Say that the data of an ended job are gone, and how work like it is started; its id says by what."""
    is_schedules = job_id.startswith(tuple(f"{kind}:" for kind in OF_SCHEDULES))
    return f"{_GONE} {_ANEW_OF_SCHEDULE if is_schedules else _ANEW}"


def exit_code(code: int | None, reason: str | None = None) -> str:
    """Write a container's exit code and what it stands for, which the reason for its end may know better."""
    if code is None:
        return "none: the worker saw no container of it end"
    if reason in _STOPPED:
        return f"{code} (stopped)"
    return f"{code} ({_EXIT_CODES.get(code, 'unknown')})"


def amount(value: object) -> str:
    """Write a count with its thousands apart."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return ABSENT
    return f"{value:,.0f}"


def cached(tokens: Mapping[str, object]) -> float | None:
    """Tell what of a total is neither input nor output: reads and writes of caches; None: nobody knows."""
    total, *parts = (tokens.get(name) for name in ("total", "input", "output"))
    figures = [one for one in parts if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if not isinstance(total, (int, float)) or len(figures) < len(parts):
        return None
    return max(0, total - sum(figures))


def dollars(value: object) -> str:
    """Write an amount of money: cents, or finer when it is less than ten cents."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return ABSENT
    return f"${value:,.4f}" if 0 < value < 0.1 else f"${value:,.2f}"


def span(start: datetime | None, end: datetime | None) -> str:
    """Write how long something took, in its two largest units."""
    if start is None or end is None:
        return ABSENT
    seconds = (end - start) / timedelta(seconds=1)
    if seconds < 60:
        return f"{max(seconds, 0):.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def moment(value: datetime | None) -> str:
    """Write an instant to the second, in UTC."""
    return ABSENT if value is None else f"{value:%Y-%m-%d %H:%M:%S}"


def moment_of(position_ms: int) -> str:
    """Write an instant given in epoch milliseconds, as far as there are dates for it."""
    try:
        return moment(datetime.fromtimestamp(position_ms / 1000, UTC))
    except (OverflowError, ValueError, OSError):
        return ABSENT
