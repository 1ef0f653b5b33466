"""What the demo tells a person: the record in words, and the way to a real provider."""

from __future__ import annotations

from pathlib import Path

from runs.files import FileFault
from runs.record import DamagedRecordError, Record

REAL_PROVIDER = """
── The same with a real model
  make image                               # builds pi-job:latest, the image with the pi coding agent
  export ANTHROPIC_API_KEY=…               # or another provider: PI_PROVIDER, PI_MODEL and its key
  export VALKEY_URL=embedded PI_EGRESS=0   # a Valkey of its own; jobs may use the network
  .venv/bin/python manage.py runworker &
  .venv/bin/python manage.py run /path/to/repository --task "…" --wait"""


def told_record(record: Record | DamagedRecordError | FileFault, logs: Path) -> str:
    """Tell a record's main fields, one a line, and where the file is."""
    if not isinstance(record, Record):
        return f"  a record in {logs} cannot be read: {record}"
    took = (
        f"{(record.ended_at - record.started_at).total_seconds():.1f} s"
        if record.ended_at and record.started_at
        else "unknown"
    )
    rows = {
        "job": record.job_id,
        "outcome": record.outcome.value + (f" ({record.reason})" if record.reason else ""),
        "target": record.target,
        "exit code": record.exit_code,
        "turns": record.turns,
        "took": took,
        "image": record.image_digest,
        "host": record.host,
        "budget": "one start of the day cap is spent" if record.budget_reserved else "nothing was spent",
        "file": logs,
    }
    return "\n".join(f"  {name:<10} {value}" for name, value in rows.items() if value is not None)
