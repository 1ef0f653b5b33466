"""What a run adds to the rollups: its figures, and under which names they are counted.

Figures are whole numbers by column, so that taking away undoes adding exactly. Only runs that ended for good
count; what their earlier attempts used counts with them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from runs.outcome import Outcome

#: Upper bounds of the buckets of spans, in seconds; one more bucket has what is longer.
BOUNDS_SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800)
MICROS = 1_000_000
LONGEST_VALUE = 200

_AMOUNTS = {"tokens_input": "input", "tokens_output": "output", "tokens_total": "total"}
COUNTERS = (
    *(outcome.value for outcome in Outcome),
    *("cost_micros", *_AMOUNTS, "took_ms", "waited_ms"),
)
TOOK = tuple(f"took_{place}" for place in range(len(BOUNDS_SECONDS) + 1))
WAITED = tuple(f"waited_{place}" for place in range(len(BOUNDS_SECONDS) + 1))
COLUMNS = (*COUNTERS, *TOOK, *WAITED)
#: The columns of a run that `contributions` reads.
NEEDED = (
    *("flow", "model", "trigger_type", "trigger_index", "scope_hash", "host", "kind", "outcome", "reason"),
    *("queued_at", "started_at", "ended_at", "exit_code", "tokens", "usage", "attempts", "final", "position"),
)

# An agent reports its own figures: no sum of them may leave the range of a column.
_MOST = 10**12
_MILLISECOND = timedelta(milliseconds=1)

Figures = dict[str, int]


class Dimension(StrEnum):
    """What runs are counted by. END has `outcome/reason`. A run without a value counts under ""."""

    TOTAL = "total"
    END = "end"
    FLOW = "flow"
    MODEL = "model"
    TRIGGER = "trigger"
    SCOPE = "scope"
    HOST = "host"
    KIND = "kind"


class Order(StrEnum):
    """By what the greatest parts are chosen."""

    RUNS = "runs"
    FAILED = "failed"
    COST = "cost"
    TOKENS = "tokens"


def contributions(run: Mapping[str, Any]) -> list[tuple[Dimension, str, Figures]]:
    """Say what a row of the run table adds, by dimension and value; nothing while it will be tried again."""
    if not run["final"]:
        return []
    counted = {run["outcome"]: 1, **_spans(run)}
    whole = dict(counted)
    by_model: dict[str, Figures] = {_value(run["model"]): dict(counted)}
    for model, used in _uses(run):
        add(whole, used)
        add(by_model.setdefault(_value(model), {}), used)
    names = {
        Dimension.TOTAL: "",
        Dimension.END: f"{run['outcome']}/{run['reason'] or ''}",
        Dimension.FLOW: _value(run["flow"]),
        Dimension.TRIGGER: _trigger(run),
        Dimension.SCOPE: _value(run["scope_hash"]),
        Dimension.HOST: _value(run["host"]),
        Dimension.KIND: _value(run["kind"]),
    }
    return [
        *((dimension, value, whole) for dimension, value in names.items()),
        *((Dimension.MODEL, value, figures) for value, figures in by_model.items()),
    ]


def add(figures: Figures, more: Mapping[str, int], *, times: int = 1) -> None:
    """Add to the figures; with `times` -1 take away."""
    for column, amount in more.items():
        figures[column] = figures.get(column, 0) + times * amount


def quantile(buckets: Sequence[int], share: float) -> float | None:
    """Estimate the span in seconds that `share` of the runs do not exceed, by interpolation in its bucket.

    None without runs; what lies beyond the last bound is told as that bound.
    """
    wanted = sum(buckets) * share
    below = 0
    for count, low, high in zip(buckets, (0, *BOUNDS_SECONDS), BOUNDS_SECONDS, strict=False):
        if count and below + count >= wanted:
            return low + (high - low) * max(0.0, wanted - below) / count
        below += count
    return float(BOUNDS_SECONDS[-1]) if sum(buckets) else None


def _uses(run: Mapping[str, Any]) -> Iterator[tuple[Any, Figures]]:
    """Tell what each attempt used of each model; of the run's own where only a sum was reported."""
    attempts = run["attempts"] if isinstance(run["attempts"], list) else []
    for attempt in (run, *(entry for entry in attempts if isinstance(entry, dict))):
        usage, tokens = attempt.get("usage"), attempt.get("tokens")
        if isinstance(usage, dict) and usage.get("models"):
            for row in usage["models"]:
                yield row.get("model"), _used(row)
        elif isinstance(tokens, dict):
            yield run["model"], _used(tokens)


def _used(reported: Mapping[str, Any]) -> Figures:
    used = {column: _whole(reported.get(key)) for column, key in _AMOUNTS.items()}
    return {**used, "cost_micros": _whole(reported.get("cost"), MICROS)}


def _spans(run: Mapping[str, Any]) -> Figures:
    """How long its last attempt ran, if one did, and how long it waited for its first."""
    found = {}
    # What was refused never ran: its moments would make every fleet look fast.
    if run["outcome"] != Outcome.POLICY or run["exit_code"] is not None:
        found.update(_span("took", TOOK, run["started_at"], run["ended_at"]))
    found.update(_span("waited", WAITED, run["queued_at"], _first_start(run)))
    return found


def _span(name: str, buckets: Sequence[str], start: datetime | None, end: datetime | None) -> Figures:
    if start is None or end is None:
        return {}
    lasted = min(max(0, (end - start) // _MILLISECOND), _MOST)
    return {buckets[bisect_left(BOUNDS_SECONDS, lasted / 1000)]: 1, f"{name}_ms": lasted}


def _first_start(run: Mapping[str, Any]) -> datetime | None:
    attempts = run["attempts"]
    first = attempts[0] if isinstance(attempts, list) and attempts else None
    text = first.get("startedAt") if isinstance(first, dict) else None
    started: datetime | None = datetime.fromisoformat(text) if text else run["started_at"]
    return started


def _trigger(run: Mapping[str, Any]) -> str:
    kind, entry = run["trigger_type"], run["trigger_index"]
    return _value(kind if entry is None else f"{kind or ''} entry {entry}".strip())


def _value(text: str | None) -> str:
    return (text or "")[:LONGEST_VALUE]


def _whole(amount: object, scale: int = 1) -> int:
    if not isinstance(amount, (int, float)) or isinstance(amount, bool):
        return 0
    return min(round(amount * scale), _MOST)
