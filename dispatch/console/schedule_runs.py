"""The last recorded runs of schedules, out of the run table of this host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from django.db import DatabaseError, InterfaceError, connection

from dispatch.console.schedule_facts import LastRun
from dispatch.console.schedule_history import instant_in
from dispatch.ids import MANUAL, OCCURRENCE
from dispatch.instants import epoch_ms
from pidispatch_site.errors import PidispatchError
from runs import latest
from runs.models import Run

# The last runs of schedules, by id: of its instants and by hand, of each the last one if there is one; None
# where nobody can tell.
LastRuns = Mapping[str, Sequence[LastRun]] | None
# Finds those of these schedules, up to an instant (ms).
Runs = Callable[[Iterable[str], int], LastRuns]


def last_runs(schedule_ids: Iterable[str], until_ms: int) -> LastRuns:
    """Find them in the table; None where it cannot be read. Makes no database where there is none."""
    if not _is_there():
        return {}
    prefixes = {f"{kind}{one}:": (one, kind) for one in schedule_ids for kind in (OCCURRENCE, MANUAL)}
    try:
        found = latest.newest(list(prefixes), until_ms=until_ms)
    except (DatabaseError, InterfaceError, PidispatchError):
        return None
    runs: dict[str, list[LastRun]] = defaultdict(list)
    for prefix, run in found.items():
        schedule_id, kind = prefixes[prefix]
        if known := _last_run(schedule_id, run, by_hand=kind == MANUAL):
            runs[schedule_id].append(known)
    return runs


def _is_there() -> bool:
    name = connection.settings_dict["NAME"]
    is_file = connection.vendor == "sqlite" and not str(name).startswith("file:")
    # Settings with problems name none; to connect tells them.
    return not is_file or "PROBLEMS" in connection.settings_dict or Path(name).exists()


def _last_run(schedule_id: str, run: Run, *, by_hand: bool) -> LastRun | None:
    # Both are written alike.
    job_id = f"{OCCURRENCE}{run.job_id.removeprefix(MANUAL)}" if by_hand else run.job_id
    instant_ms = instant_in(job_id, schedule_id)
    if instant_ms is None or not run.final:
        return None
    ended = run.ended_at or run.started_at
    return LastRun(
        job_id=run.job_id,
        instant_ms=instant_ms,
        ended_ms=epoch_ms(ended) if ended else None,
        outcome=run.outcome,
        reason=run.reason or "",
        host=run.host or "",
        by_hand=by_hand,
    )
