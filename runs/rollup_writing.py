"""Keeps the rollups in step with the run table, within the transaction that changes a row.

What a row said before is taken away and what it says now is added. Rows that retention removes stay counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from runs.models import Run
from runs.rollup_figures import NEEDED
from runs.rollup_periods import Grain
from runs.rollup_tally import Tally, count, count_ever, widened

_RANK = ("attempt", "final", "position")
# Any number that nothing else in the database uses as an advisory lock.
_LOCK = 6_072_115_001


def lock(cursor: CursorWrapper) -> None:
    """Let nobody else change runs or rollups until the transaction ends. SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def changes(incoming: Sequence[tuple[str, Mapping[str, Any]]]) -> Tally:
    """Tell what the rollups gain and lose when these rows (job id, columns) are written; call it locked.

    A row counts only if it is newer news than the table's, as the writing itself judges.
    """
    known = {
        job_id: rank
        for job_id, *rank in Run.objects.filter(pk__in={job_id for job_id, _ in incoming}).values_list(
            "pk", *_RANK
        )
    }
    stored = set(known)
    news: dict[str, Mapping[str, Any]] = {}
    for job_id, columns in incoming:
        rank = [columns[name] for name in _RANK]
        if job_id not in known or rank > known[job_id]:
            known[job_id] = rank
            news[job_id] = columns
    replacing = [job_id for job_id in news if job_id in stored]
    rows = Run.objects.filter(pk__in=replacing).values("pk", *NEEDED) if replacing else ()
    before = {row["pk"]: row for row in rows}
    tally: Tally = {}
    for job_id, columns in news.items():
        replaced = before.get(job_id)
        if replaced:
            count(tally, replaced, times=-1)
        count(tally, columns)
        if not (replaced and replaced["final"]):
            count_ever(tally, columns)
    return widened(tally, tuple(Grain))
