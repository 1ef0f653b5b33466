"""What the demo tells a person: numbered steps with the time passed, the record in words, what comes next."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from runs import wording
from runs.files import FileFault, stem
from runs.record import DamagedRecordError, Record

REAL_PROVIDER = """
The same with a real model:
  make image                               # builds pi-job:latest, the image with the pi coding agent
  export ANTHROPIC_API_KEY=…               # or another provider: PI_PROVIDER, PI_MODEL and its key
  export VALKEY_URL=embedded PI_EGRESS=0   # a Valkey of its own; jobs may use the network
  .venv/bin/python manage.py runworker &
  .venv/bin/python manage.py run /path/to/repository --task "…" --wait"""


def told_image(reference: str) -> str:
    """Say that the image outlives the demo, and how it is removed."""
    return f"The image stays for the next time; `docker rmi {reference}` removes it."


class Teller:
    """Writes to a person who watches: each line at once, whatever else writes to the terminal."""

    def __init__(self, write: Callable[[str], object], *, strong: Callable[[str], str] = str) -> None:
        self._write = write
        self._strong = strong
        self._began = time.monotonic()
        self._steps = 0

    def step(self, title: str) -> None:
        """Begin a numbered step."""
        self._steps += 1
        passed = time.monotonic() - self._began
        self._write("\n" + self._strong(f"{self._steps}. {title}") + f"   [{passed:.1f} s]")

    def say(self, text: str) -> None:
        """Say something below the step, indented."""
        self._write("\n".join(f"   {line}".rstrip() for line in text.splitlines()))

    def show(self, text: str) -> None:
        """Say something as it stands."""
        self._write(text)


def told_record(record: Record | DamagedRecordError | FileFault, logs: Path) -> str:
    """Tell a record's main fields, one a line, and where the file is."""
    if not isinstance(record, Record):
        return f"A record in {logs} cannot be read: {record}"
    reason = f" ({record.reason}: {wording.reason_sentence(record.reason)})" if record.reason else ""
    rows = {
        "job": record.job_id,
        "outcome": record.outcome.value + reason,
        "target": record.target,
        "exit code": wording.exit_code(record.exit_code),
        "turns": record.turns,
        "took": wording.span(record.started_at, record.ended_at),
        "image": record.image_digest,
        "host": record.host,
        "budget": "one start of the day's cap is spent" if record.budget_reserved else "nothing was spent",
        "file": logs / f"{stem(record.job_id)}.json",
    }
    return "\n".join(f"{name:<10} {value}" for name, value in rows.items() if value is not None)
