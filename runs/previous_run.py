"""When a schedule ran before: found among the record files of its earlier instants (Q 10.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from runs.files import RecordFiles, stem


def previous_run(files: RecordFiles, schedule_id: str, before_ms: int) -> datetime | None:
    """Find the end, else the start, of the latest run before this instant (ms) whose record is kept here.

    None when there is none, or when the folder cannot be read.
    """
    try:
        names = [path.name for path in files.folder.iterdir()]
    except OSError:
        return None
    found = previous_record(names, schedule_id, before_ms)
    record = files.find(f"repeat:{schedule_id}:{found[1]}") if found else None
    return (record.ended_at or record.started_at) if record else None


def previous_record(names: Iterable[str], schedule_id: str, before_ms: int) -> tuple[str, int] | None:
    """Choose the record file of the schedule's latest instant before this one, and say that instant (ms)."""
    of_schedule = re.compile(rf"{re.escape(stem(f'repeat:{schedule_id}:'))}([0-9]{{1,15}})\.json")
    hits = (hit for hit in map(of_schedule.fullmatch, names) if hit)
    earlier = [(int(hit[1]), hit[0]) for hit in hits if int(hit[1]) < before_ms]
    if not earlier:
        return None
    instant_ms, name = max(earlier)
    return name, instant_ms
