"""The newest run of each of many ids that end in an instant, some hundred asked of the table at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection

from runs.models import Run

_AT_ONCE = 300
_LISTED = ("job_id", "started_at", "ended_at", "outcome", "reason", "host", "final")


def newest(prefixes: Sequence[str], *, until_ms: int) -> Mapping[str, Run]:
    """Find for each prefix the run whose id is the prefix and the greatest instant (ms) up to `until_ms`.

    By prefix; one without runs is left out. Raises Django's DatabaseError.
    """
    found: dict[str, Run] = {}
    for start in range(0, len(prefixes), _AT_ONCE):
        found.update(_newest(prefixes[start : start + _AT_ONCE], until_ms))
    return found


def _newest(prefixes: Sequence[str], until_ms: int) -> dict[str, Run]:
    bounds = [bound for prefix in prefixes for bound in (prefix, f"{prefix}{until_ms}")]
    with connection.cursor() as cursor:
        cursor.execute(_statement(len(prefixes)), bounds)
        prefix_of = {job_id: prefix for prefix, job_id in cursor.fetchall() if job_id is not None}
    runs = Run.objects.only(*_LISTED).filter(job_id__in=list(prefix_of))
    return {prefix_of[run.job_id]: run for run in runs}


def _statement(count: int) -> str:
    """Walk the index of ids for each pair of bounds, one step each.

    Instants have as many digits for centuries, so that the greatest text is the latest instant.
    """
    quote = connection.ops.quote_name
    table, job_id = quote(Run._meta.db_table), quote("job_id")
    low, high, order = f"{job_id} >= low", f"{job_id} <= high", f"{job_id} DESC"
    if connection.vendor == "postgresql":
        # By bytes, whatever the collation of the database: there is an index for that.
        low, high, order = f"{job_id} ~>=~ low", f"{job_id} ~<=~ high", f"{job_id} USING ~>~"
    pairs = ", ".join(["(%s, %s)"] * count)
    return (
        f"WITH asked(low, high) AS (VALUES {pairs}) SELECT low, (SELECT {job_id} FROM {table}"  # noqa: S608
        f" WHERE {low} AND {high} ORDER BY {order} LIMIT 1) FROM asked"
    )
