"""How a background action stands, as a value, and as the texts that Valkey keeps of it.

Whatever is read may have been written by anybody: it is bounded, of the right kinds, and printable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dispatch.console.arguments import one_line

#: From here on a running action that has not beaten is told to be interrupted.
SILENT_MS = 20_000
#: Of the lines that an action told, so many of the last are kept.
MOST_LINES = 50
_MOST_NOTES = 50
_MOST_CELLS = 12
_LONGEST = 1_000
_LATEST_MS = 10**16


class State(StrEnum):
    """RUNNING, DONE with a result, FAILED without one, INTERRUPTED: its web process is silent."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the action's table; `is_good` is None where that cannot be said."""

    cells: tuple[str, ...]
    is_good: bool | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an action: one sentence, whether all was done as asked, and what else is to be said."""

    summary: str
    is_good: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """An action as a page shows it. Instants in ms of Valkey's clock, None where they are not known.

    `total` is None where nobody knows how much there is to do. `rows` is a page of the table, which has
    `row_count` of them.
    """

    id: str
    kind: str
    by: str = ""
    reason: str = ""
    state: State = State.RUNNING
    started_ms: int | None = None
    beat_ms: int | None = None
    now_ms: int | None = None
    total: int | None = None
    done: int = 0
    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    row_count: int = 0
    result: Result | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is more to come."""
        return self.state is State.RUNNING


def head_text(progress: Progress) -> str:
    """Write all but the rows and instants as one JSON text."""
    result = progress.result
    head: dict[str, Any] = {
        "kind": progress.kind,
        "by": progress.by,
        "reason": progress.reason,
        "state": progress.state.value,
        "total": progress.total,
        "done": progress.done,
        "lines": list(progress.lines),
        "columns": list(progress.columns),
    }
    if result is not None:
        head["result"] = {"summary": result.summary, "good": result.is_good, "notes": list(result.notes)}
    return json.dumps(head)


def row_text(row: Row) -> str:
    """Write one row as JSON."""
    return json.dumps({"cells": list(row.cells), "good": row.is_good})


def read_progress(operation_id: str, answer: Sequence[Any], *, now_ms: int) -> Progress | None:
    """Read what `read_operations.lua` answers of one action; None when nothing of ours stands there."""
    text, started, beat, count, *rows = answer
    head = _object(text)
    kind = _line(head.get("kind"))
    if not kind or head.get("state") not in [state.value for state in State]:
        return None
    state, beat_ms = State(head["state"]), _instant(beat)
    if state is State.RUNNING and (beat_ms is None or now_ms - beat_ms > SILENT_MS):
        state = State.INTERRUPTED
    return Progress(
        id=operation_id,
        kind=kind,
        by=_line(head.get("by")),
        reason=_line(head.get("reason")),
        state=state,
        started_ms=_instant(started),
        beat_ms=beat_ms,
        now_ms=now_ms,
        total=_count(head.get("total")),
        done=_count(head.get("done")) or 0,
        lines=_lines(head.get("lines"), MOST_LINES),
        columns=_lines(head.get("columns"), _MOST_CELLS),
        rows=tuple(map(_row, rows)),
        row_count=int(count),
        result=_result(head.get("result")),
    )


def _result(found: object) -> Result | None:
    if not isinstance(found, Mapping):
        return None
    return Result(
        summary=_line(found.get("summary")),
        is_good=found.get("good") is True,
        notes=_lines(found.get("notes"), _MOST_NOTES),
    )


def _row(text: bytes) -> Row:
    found = _object(text)
    good = found.get("good")
    return Row(_lines(found.get("cells"), _MOST_CELLS), good if isinstance(good, bool) else None)


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _lines(found: object, most: int) -> tuple[str, ...]:
    return tuple(map(_line, found[:most])) if isinstance(found, list) else ()


def _line(found: object) -> str:
    return one_line(found[:_LONGEST]) if isinstance(found, str) else ""


def _count(found: object) -> int | None:
    return found if type(found) is int and 0 <= found < _LATEST_MS else None


def _instant(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) <= len(str(_LATEST_MS)) else None
