"""`manage.py rebuildruns`: fill the run table from the record files, and count its rollups anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from pidispatch_site import schema
from pidispatch_site.databases import said
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory
from runs import rollup_recount, rows
from runs.files import UNREADABLE, RecordFiles
from runs.record import Record

BATCH = 500


class Command(BaseCommand):
    help = (
        "Fill the run table from the record files and count the figures of Insights anew; rows of newer news"
        " stay, none is deleted."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.PIDISPATCH.logs_dir)
        read = written = 0
        self._damaged = 0
        schema.migrate_if_needed(StateDirectory(settings.PIDISPATCH.state_dir))
        try:
            # First: who ends here has it finished by the worker's next start.
            rollup_recount.ask()
            for records in _batches(self._records(folder)):
                written += rows.restore(records)
                read += len(records)
            days = rollup_recount.finish(datetime.now(UTC))
        except OSError as error:
            raise OperationalError(
                f"The logs directory {folder} cannot be read: {error.strerror}."
            ) from error
        except DatabaseError as error:
            raise OperationalError(
                f"The database refused after {read} records: {said(error)}. Repeating does no harm."
            ) from error
        self.stdout.write(f"{read} records read, {written} rows written, {read - written} already newer.")
        self.stdout.write(f"Days counted anew for Insights: {days}.")
        self._complain(folder)

    def _records(self, folder: Path) -> Iterator[Record]:
        for name, found in RecordFiles(folder).scan():
            if isinstance(found, Record):
                yield found
            else:
                self._damaged += 1
                self.stderr.write(f"{name} is no record: {found}")

    def _complain(self, folder: Path) -> None:
        aside = len(list((folder / UNREADABLE).glob("*.json")))
        if aside:
            self.stderr.write(f"{aside} damaged records were set aside in {folder / UNREADABLE} earlier.")
        if self._damaged:
            raise OperationalError(
                f"{self._damaged} files in {folder} could not be read. Repair them or move them away; "
                f"the rows of the others are written."
            )


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    rest = iter(records)
    while batch := list(islice(rest, BATCH)):
        yield batch
