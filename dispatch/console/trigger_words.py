"""What a rule of the triggers file waits for and runs, in a few words."""

from __future__ import annotations

from collections.abc import Mapping

from dispatch.console.arguments import one_line
from dispatch.triggers.entries import (
    CommentOn,
    CronOn,
    Disarmed,
    IssueOn,
    LabelOn,
    On,
    PullRequestOn,
    Run,
    is_one_shot,
)

_LONGEST = 60


def matches(on: On) -> str:
    """Say what it starts on."""
    match on:
        case CronOn():
            return f"schedule {on.id}"
        case LabelOn():
            return f"label {_labels(on)}"
        case CommentOn():
            return f"comment with {short(on.phrase)}"
        case PullRequestOn():
            about = matches_kind(on)
            return f"{about}, label {labels}" if (labels := _labels(on)) else about
        case IssueOn():
            return f"issue{_number(on.number)} {'/'.join(on.action)}"
        case Disarmed():
            return matches(on.was)


def matches_kind(on: On) -> str:
    """Say it without labels and phrases, which are an operator's own words."""
    match on:
        case LabelOn():
            return "label"
        case CommentOn():
            return "comment"
        case PullRequestOn():
            return f"pull request{_number(on.number)} {'/'.join(on.action)}"
        case Disarmed():
            return matches_kind(on.was)
        case CronOn() | IssueOn():
            return matches(on)


def slot(run: Run) -> str:
    """Say what it runs: a flow, or a command."""
    return short(f"command {run.command}" if run.command else f"flow {run.flow or ''}".strip())


def spent(on: On) -> Mapping[str, str | None] | None:
    """Tell when and by which job a one-shot was spent; None for an armed one, and for what is none."""
    return (
        {"at": short(on.at), "job": short(on.job_id) if on.job_id else None}
        if isinstance(on, Disarmed)
        else None
    )


def once(on: On, *, ran_by: str | None = None) -> str:
    """Say whether a one-shot is armed, or by what it was spent; blank for what is none.

    `ran_by` is a job that has spent it and whose disarm failed.
    """
    if isinstance(on, Disarmed):
        by = f" by {short(on.job_id)}" if on.job_id else ""
        return f"spent {short(on.at)}{by}"
    if ran_by:
        return f"once, ran by {short(ran_by)}, not disarmed"
    return "once, armed" if is_one_shot(on) else ""


def short(text: str) -> str:
    """Make one short line of what an author wrote."""
    line = one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _labels(on: LabelOn | PullRequestOn) -> str:
    parts = (("any of", on.any), ("all of", on.all), ("none of", on.none))
    return short("; ".join(f"{how} {', '.join(names)}" for how, names in parts if names))


def _number(number: int | None) -> str:
    return "" if number is None else f" #{number}"
