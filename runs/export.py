"""The filtered list as a file, CSV or JSON, written while it is read: never the whole of it in memory."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import DatabaseError

from runs import history, rows
from runs.models import Run
from runs.record import camel
from runs.shape import iso
from runs.walk import Key, Query

#: So many runs in one file; the newest.
MOST = 100_000
CUT = f"The newest {MOST:,} runs of the filter; older ones are left out."
BROKEN = "The file ends early: the database did not answer any more."

_KEYS_AT_ONCE = 10_000
_RUNS_AT_ONCE = 500
_COLUMNS = (
    *("job_id", "kind", "target", "flow", "queued_at", "started_at", "ended_at", "outcome", "reason"),
    *("exit_code", "turns", "provider", "model", "attempt", "final", "parent_job_id", "chain_depth"),
    *("replica", "replicas", "trigger_type", "trigger_index", "scope_hash", "image_digest", "host"),
)
_TOKENS = {"inputTokens": "input", "outputTokens": "output", "totalTokens": "total", "cost": "cost"}
# A spreadsheet takes a cell that begins so for a formula; in some languages the wide forms, too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def as_csv(query: Query) -> Iterator[str]:
    """Write a heading and a line a run; a last line that begins with `#` says what is missing."""
    yield _lines([[*map(camel, _COLUMNS), *_TOKENS]])
    written = 0
    try:
        for runs in _runs(query, *_COLUMNS, "tokens"):
            kept = runs[: MOST - written]
            written += len(kept)
            yield _lines([_cells(run) for run in kept])
            if len(runs) > len(kept):
                yield _lines([[f"# {CUT}"]])
                return
    except DatabaseError:
        yield _lines([[f"# {BROKEN}"]])


def as_json(query: Query) -> Iterator[str]:
    """Write `{runs: [record, …], complete, note}`; a note says what is missing, else it is null."""
    yield '{"runs": ['
    written, note = 0, None
    try:
        for runs in _runs(query):
            kept = runs[: MOST - written]
            texts = (json.dumps(rows.as_recorded(run), separators=(",", ":")) for run in kept)
            yield "".join(f"{',' if written + place else ''}\n{text}" for place, text in enumerate(texts))
            written += len(kept)
            if len(runs) > len(kept):
                note = CUT
                break
    except DatabaseError:
        note = BROKEN
    yield f'\n], "complete": {json.dumps(note is None)}, "note": {json.dumps(note)}}}\n'


def _runs(query: Query, *columns: str) -> Iterator[list[Run]]:
    """Read the runs, some hundred at a time, to one beyond `MOST`."""
    if query.search:
        yield history.whole([Key(run.position, run.job_id) for run in history.page(query).runs], *columns)
        return
    left = MOST + 1
    for found in history.stretches(query, size=_KEYS_AT_ONCE):
        keys = found[:left]
        left -= len(keys)
        steps = iter(keys)
        while some := list(islice(steps, _RUNS_AT_ONCE)):
            yield history.whole(some, *columns)
        if left <= 0:
            return


def _cells(run: Run) -> list[Any]:
    tokens = run.tokens if isinstance(run.tokens, Mapping) else {}
    return [*(getattr(run, name) for name in _COLUMNS), *(tokens.get(name) for name in _TOKENS.values())]


def _lines(cells: Iterable[Sequence[Any]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows([[_cell(value) for value in line] for line in cells])
    return written.getvalue()


def _cell(value: Any) -> str:
    """Write a value so that no spreadsheet calculates with it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = iso(value) if isinstance(value, datetime) else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
