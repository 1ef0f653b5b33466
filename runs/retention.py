"""Removes what is older than the operator keeps: record files, raw logs, rows (Q 15.4); 0 days keeps all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from pidispatch_site.log import event
from runs import rollup_recount
from runs.files import UNREADABLE, fault_of
from runs.models import Run

_REAPED_SUFFIXES = (".json", ".log")
# Short transactions: the recorder writes into the same table meanwhile.
_ROWS_AT_ONCE = 500


def reap_logs(folder: Path, *, days: int, now: datetime) -> int:
    """Delete record files and raw logs that were last written more than `days` ago; answer how many.

    Only at boot, when no job writes. What cannot be deleted is logged and left.
    """
    if not days:
        return 0
    oldest = (now - timedelta(days=days)).timestamp()
    reaped = 0
    for place in (folder, folder / UNREADABLE):
        try:
            for path in _older(place, oldest):
                path.unlink(missing_ok=True)
                event("reaped_log", file=path.name)
                reaped += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            event("log_reaper_skipped", reason=fault_of(error).value)
    return reaped


def _older(folder: Path, oldest: float) -> Iterator[Path]:
    with os.scandir(folder) as listing:
        found = [
            Path(item.path)
            for item in listing
            if item.name.endswith(_REAPED_SUFFIXES)
            and item.is_file(follow_symlinks=False)
            and item.stat(follow_symlinks=False).st_mtime < oldest
        ]
    yield from found


def prune_rows(*, days: int, now: datetime) -> int:
    """Delete the rows of runs that ended more than `days` ago; answer how many. Of unknown age, kept.

    The rollups keep them: what they lack yet is counted before.
    """
    rollup_recount.finish(now)
    rollup_recount.forget_hours(now)
    if not days:
        return 0
    oldest_kept = now - timedelta(days=days)
    rollup_recount.rows_removed(oldest_kept)
    oldest = int(oldest_kept.timestamp() * 1000)
    pruned = 0
    while True:
        old = Run.objects.filter(position__gt=0, position__lt=oldest).order_by("position")
        ids = list(old.values_list("pk", flat=True)[:_ROWS_AT_ONCE])
        if not ids:
            break
        pruned += Run.objects.filter(pk__in=ids).delete()[0]
    if pruned:
        event("pruned_runs", count=pruned)
    return pruned
