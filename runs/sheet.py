"""What the page of one run shows: every field of its record, in words, in sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs import wording
from runs.models import Run
from runs.shape import COUNTERS
from runs.wording import ABSENT

_COUNTER_NAMES = {
    "calls": "Calls",
    "input": "Input",
    "output": "Output",
    "cacheRead": "Cache read",
    "cacheWrite": "Cache write",
    "cacheWrite1h": "Cache write 1 h",
    "reasoning": "Reasoning",
    "total": "Total",
    "cost": "Cost",
    "unpriced": "Unpriced",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One field: its name, its value, and what a person may want to know of it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Fields that belong together."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of figures; the first column names the row."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def figures(run: Run) -> list[Line]:
    """Name the few figures that are looked at first."""
    tokens = _object(run.tokens)
    return [
        Line("Took", wording.span(run.started_at, run.ended_at)),
        Line("Turns", wording.amount(run.turns)),
        Line("Tokens", wording.amount(tokens.get("total"))),
        Line("Cost", wording.dollars(tokens.get("cost"))),
        Line("Attempt", wording.amount(run.attempt + 1), "" if run.final else "another follows"),
    ]


def sections(run: Run) -> list[Section]:
    """Sort all fields that are not tables."""
    return [
        Section("How it ended", _ending(run)),
        Section("What it was", _job(run)),
        Section("When (UTC)", _times(run)),
        Section("Money and tokens", _money(run)),
        Section("Where it came from", _origin(run)),
    ]


def tables(run: Run) -> list[Table]:
    """Make the tables that have rows: usage by model, earlier attempts."""
    return [table for table in (_usage(run), _attempts(run)) if table.rows]


def _ending(run: Run) -> list[Line]:
    return [
        Line("Outcome", wording.outcome_name(run.outcome), wording.outcome_sentence(run.outcome)),
        Line("Reason", run.reason or ABSENT, wording.reason_sentence(run.reason)),
        Line("Exit code", wording.exit_code(run.exit_code, run.reason)),
        Line("Final", _yes(run.final), "" if run.final else "It will be tried again."),
        Line("Attempts before this one", wording.amount(run.attempt)),
    ]


def _job(run: Run) -> list[Line]:
    return [
        Line("Kind", run.kind or ABSENT),
        Line("Target", run.target or ABSENT),
        Line("Flow", run.flow or ABSENT),
        Line("Model", _model(run)),
        Line("Host", run.host or ABSENT),
        Line("Image", run.image_digest or ABSENT),
        Line(
            "Scope",
            run.scope_hash or ABSENT,
            "A hash of the folder or repository; runs of one scope share it.",
        ),
    ]


def _times(run: Run) -> list[Line]:
    waited = wording.span(run.queued_at, run.started_at)
    return [
        Line("Queued", wording.moment(run.queued_at)),
        Line(
            "Started", wording.moment(run.started_at), f"after waiting {waited}" if waited != ABSENT else ""
        ),
        Line("Ended", wording.moment(run.ended_at)),
    ]


def _money(run: Run) -> list[Line]:
    tokens = _object(run.tokens)
    reserved = "It counts as one start against the caps." if run.budget_reserved else ""
    return [
        Line("Start paid for", _yes(run.budget_reserved), reserved),
        Line("Turns", wording.amount(run.turns)),
        Line("Input tokens", wording.amount(tokens.get("input"))),
        Line("Output tokens", wording.amount(tokens.get("output"))),
        Line("Cached tokens", wording.amount(wording.cached(tokens)), "read from and written to caches"),
        Line(
            "Total tokens",
            wording.amount(tokens.get("total")),
            "" if tokens.get("metered", True) else "not metered",
        ),
        Line("Cost", wording.dollars(tokens.get("cost"))),
    ]


def _origin(run: Run) -> list[Line]:
    session = _object(run.session)
    resumed = _yes(session.get("resumed")) if session else ABSENT
    size = session.get("bytes")
    return [
        Line("Trigger", run.trigger_type or ABSENT, _entry(run.trigger_index)),
        *_schedule(run.job_id),
        Line("Parent job", run.parent_job_id or ABSENT),
        Line("Chain depth", wording.amount(run.chain_depth)),
        Line("Chained jobs refused", wording.amount(run.chain_refused)),
        Line("Replica", _replica(run)),
        Line("Session resumed", resumed, str(session.get("reason") or "")),
        Line("Session size", f"{size:,} bytes" if isinstance(size, int) else ABSENT),
    ]


def _schedule(job_id: str) -> list[Line]:
    """Name the schedule of a job that one started, or that somebody started for it."""
    kind, _, rest = job_id.partition(":")
    name = rest.rpartition(":")[0]
    if kind not in wording.OF_SCHEDULES or not name:
        return []
    return [Line("Schedule", name, wording.OF_SCHEDULES[kind])]


def _usage(run: Run) -> Table:
    usage = _object(run.usage)
    models = [row for row in usage.get("models") or () if isinstance(row, Mapping)]
    shown = [name for name in COUNTERS if name in {"input", "output", "total", "cost"} or _any(models, name)]
    more = f", {usage['truncated']} more models left out" if usage.get("truncated") else ""
    return Table(
        f"Usage by model (pi {usage.get('piAi') or 'of unknown version'}{more})",
        ["Model", *(_COUNTER_NAMES[name] for name in shown)],
        [
            [f"{row.get('provider')}/{row.get('model')}", *(_counter(name, row.get(name)) for name in shown)]
            for row in models
        ],
    )


def _any(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(row.get(name) for row in rows)


def _counter(name: str, value: object) -> str:
    return wording.dollars(value) if name == "cost" else wording.amount(value)


def _attempts(run: Run) -> Table:
    attempts = run.attempts if isinstance(run.attempts, list) else []
    return Table(
        "Earlier attempts",
        [
            "Attempt",
            "Started (UTC)",
            "Ended (UTC)",
            "Outcome",
            "Reason",
            "Exit code",
            "Turns",
            "Tokens",
            "Cost",
        ],
        [_attempt(number, _object(attempt)) for number, attempt in enumerate(attempts, start=1)],
    )


def _attempt(number: int, attempt: Mapping[str, Any]) -> list[str]:
    tokens = _object(attempt.get("tokens"))
    code = attempt.get("exitCode")
    return [
        str(number),
        _iso_moment(attempt.get("startedAt")),
        _iso_moment(attempt.get("endedAt")),
        wording.outcome_name(str(attempt.get("outcome"))),
        str(attempt.get("reason") or ABSENT),
        ABSENT if code is None else str(code),
        wording.amount(attempt.get("turns")),
        wording.amount(tokens.get("total")),
        wording.dollars(tokens.get("cost")),
    ]


def _iso_moment(value: object) -> str:
    return value[:19].replace("T", " ") if isinstance(value, str) else ABSENT


def _model(run: Run) -> str:
    return " / ".join(part for part in (run.provider, run.model) if part) or ABSENT


def _replica(run: Run) -> str:
    return ABSENT if run.replica is None else f"{run.replica} of {run.replicas or '?'}"


def _entry(index: int | None) -> str:
    return "" if index is None else f"entry {index} of the triggers file, counted from 0"


def _yes(value: object) -> str:
    return ABSENT if value is None else "yes" if value else "no"


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
