"""`manage.py logs JOB [--follow]`: show what a job printed, as far as this host kept it."""

from __future__ import annotations

import os
import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.core.management.base import BaseCommand

from pidispatch_site.errors import OperationalError
from runs.files import RecordFiles
from runs.record import Record

CHUNK_BYTES = 64 * 1024
POLL_SECONDS = 0.5
# A job's output is untrusted: on a terminal its control sequences could rewrite the screen or the title.
_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


class Command(BaseCommand):
    help = "Show the raw output of a job that ran on this host (kept only with PI_CAPTURE_JOB_LOGS=1)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", help="the job's id, as `run` printed it and the run list shows it")
        parser.add_argument("--follow", action="store_true", help="go on until the job has ended (or Ctrl-C)")

    def handle(self, *args: Any, **options: Any) -> None:
        configuration = settings.PIDISPATCH
        files = RecordFiles(Path(configuration.logs_dir))
        job_id, follow = str(options["job"]), bool(options["follow"])
        path = files.log_path(job_id)
        waits = follow and configuration.capture_job_logs and files.find(job_id) is None
        if not path.exists() and not waits:
            raise OperationalError(absence(files, job_id, capture=configuration.capture_job_logs))
        if not path.exists():
            self.stderr.write(f"{job_id} has printed nothing here yet; waiting for it (Ctrl-C ends).")
        try:
            show(path, sys.stdout.buffer, ended=_ends(files, job_id) if follow else lambda: True)
        except (BrokenPipeError, KeyboardInterrupt):
            return


def absence(files: RecordFiles, job_id: str, *, capture: bool) -> str:
    """Say why there is no raw log of a job, and what to do."""
    kept = files.find(job_id)
    if kept is None:
        return (
            f"This host has neither a log nor a record of {job_id!r} in {files.folder}. It may still wait "
            f"(manage.py status counts those), have run on another host (the run list names it), "
            f"or never have been."
        )
    told = f"{job_id} ended here: {_summary(kept)}. Its output was not kept"
    if not capture:
        return f"{told}: PI_CAPTURE_JOB_LOGS is off. Set PI_CAPTURE_JOB_LOGS=1 and restart the worker."
    return f"{told}, because no container ran, or capture was off then, or the log was reaped by age."


def _summary(record: Record) -> str:
    return record.outcome.value + (f" ({record.reason})" if record.reason else "")


def _ends(files: RecordFiles, job_id: str) -> Callable[[], bool]:
    def ended() -> bool:
        kept = files.find(job_id)
        return kept is not None and kept.final

    return ended


def show(
    path: Path,
    out: BinaryIO,
    *,
    ended: Callable[[], bool],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Copy the log to `out`, and what is appended, until `ended` answered true before the last look at it."""
    position = 0
    while True:
        last = ended()
        for chunk in _from(path, position):
            position += len(chunk)
            out.write(_CONTROLS.sub(b"?", chunk) if out.isatty() else chunk)
        out.flush()
        if last:
            return
        sleep(POLL_SECONDS)


def _from(path: Path, position: int) -> Iterator[bytes]:
    """Read from there to where the log ends now: a job may go on printing faster than we copy."""
    try:
        with path.open("rb") as file:
            rest = file.seek(0, os.SEEK_END) - position
            file.seek(position)
            while rest > 0 and (chunk := file.read(min(rest, CHUNK_BYTES))):
                rest -= len(chunk)
                yield chunk
    except FileNotFoundError:
        return
