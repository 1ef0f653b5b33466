"""The answer of `cancel` as lines for a person, and as data for programs and pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.cancelling import Cancelled, Fate
from dispatch.console.instants import span
from dispatch.console.obstacles import TIMINGS
from runs import wording
from runs.outcome import Reason

_ABSENT = (
    "is not known there: it never was, it was cancelled before it started, or it ended so long ago that its"
    " id is forgotten. The console's list of runs keeps what ran."
)


def line(found: Cancelled) -> str:
    """Say what became of one job."""
    return one_line(f"Job {found.job_id} {_said(found)}")


def _said(found: Cancelled) -> str:
    match found.fate:
        case Fate.DROPPED:
            ran = "was taken out of the queue: it is not tried again."
            return ran if found.attempt else "was taken out of the queue: it never runs."
        case Fate.STOPPING:
            return f"is being stopped by {found.host}; it ends as {Reason.OPERATOR_CANCEL}."
        case Fate.CANCELLED:
            return f"has been stopped: {Reason.OPERATOR_CANCEL}."
        case Fate.ENDED:
            return f"is not there to be cancelled any more: {_ending(found)}"
        case Fate.UNANSWERED:
            return _unanswered(found)
        case Fate.UNKNOWN:
            return _ABSENT


def _ending(found: Cancelled) -> str:
    if found.outcome is None:
        return "something other than pi-dispatch gave it a state that is none of ours."
    token = f"{found.outcome} ({found.reason})" if found.reason else found.outcome.value
    said = (wording.outcome_sentence(found.outcome), wording.reason_sentence(found.reason))
    return " ".join(filter(None, (f"{token}.", *said)))


def _unanswered(found: Cancelled) -> str:
    host = found.host or "its worker"
    said = f"is not stopped: {host} did not answer, and the request is taken back."
    if found.silent_ms is None:
        return f"{said} Repeat this; `manage.py why {found.job_id}` says how the job stands."
    gone = span(int(TIMINGS.gone * 1000))
    return (
        f"{said} {host} has been silent for {span(found.silent_ms)}: after {gone} the job is recorded as"
        f" stalled and never run again by itself. Its container, if it goes on, ends itself at its deadline"
        f" (`manage.py why {found.job_id}`)."
    )


def exit_code(found: Sequence[Cancelled]) -> int:
    """Give 0 when all are cancelled, 2 when the others are no jobs there, else 1 (contracts 9)."""
    failed = {one.fate for one in found if not one.is_done}
    if not failed:
        return 0
    return 2 if failed == {Fate.UNKNOWN} else 1


def as_data(found: Sequence[Cancelled]) -> dict[str, Any]:
    """Put it into the shape of `cancel --json`: null where nothing is known."""
    return {
        "jobs": [
            {
                "job": one.job_id,
                "cancelled": one.is_done,
                "fate": one.fate.value,
                "state": one.state.value if one.state else None,
                "host": one.host,
                "silent": one.silent_ms,
                "outcome": one.outcome.value if one.outcome else None,
                "reason": one.reason,
                "sentence": line(one),
            }
            for one in found
        ]
    }
