"""Writes records into the run table: one upsert by job id that lets only newer news replace a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from pidispatch_site.errors import PidispatchError
from runs import rollup_store, rollup_writing
from runs.models import Run
from runs.record import Record, camel, position_ms
from runs.shape import iso

# The database is away, locked, full or not migrated: what helps is time or a person, for every row alike.
# (PostgreSQL calls a missing table a mistake of the program.)
_UNAVAILABLE = (OperationalError, InterfaceError, ProgrammingError, PidispatchError)
_FIELDS = Run._meta.concrete_fields
_ORDER = ("attempt", "final", "position")
# `once` is for who spends an entry of the triggers file, right after the record is written: no page asks.
_NAMES = tuple(name for name in Record.__dataclass_fields__ if name != "once")


class RowFault(StrEnum):
    """Why a row could not be written; safe to log."""

    UNAVAILABLE = "database-unavailable"
    REFUSED = "row-refused"


def write(records: Sequence[Record]) -> list[RowFault | None]:
    """Make the table hold these records, or newer ones; answer for each in turn, None when it does.

    One transaction; when that fails, a transaction each, so that one bad record holds up no other.
    """
    try:
        _upsert(records, newer="> ")
    except _UNAVAILABLE:
        _drop_connection()
    except (DatabaseError, ValueError, OverflowError):
        pass
    else:
        return [None] * len(records)
    return _write_singly(records)


def restore(records: Sequence[Record]) -> int:
    """Make the table say what these records say, unless it knows newer news; answer how many rows changed.

    A row of equal rank is written again, so that columns which a later version added are filled. The rollups
    are not touched: what retention removed may come back, and was counted (`rollup_recount`). Raises Django's
    DatabaseError.
    """
    return _upsert(records, newer=">=", counted=False)


def _write_singly(records: Sequence[Record]) -> list[RowFault | None]:
    answers: list[RowFault | None] = []
    for record in records:
        try:
            _upsert([record], newer="> ")
        except _UNAVAILABLE:
            # Each further try could wait out the database's own timeout.
            _drop_connection()
            return answers + [RowFault.UNAVAILABLE] * (len(records) - len(answers))
        except (DatabaseError, ValueError, OverflowError):
            answers.append(RowFault.REFUSED)
        else:
            answers.append(None)
    return answers


def _drop_connection() -> None:
    # A connection that a restart of the server has cut stays broken for ever in a thread of its own (F13).
    if not connection.in_atomic_block:
        connection.close()


def _upsert(records: Sequence[Record], *, newer: str, counted: bool = True) -> int:
    # The connection itself: Django's proxy looks it up again for each of a row's values.
    database = transaction.get_connection()
    told = [(record.job_id, columns_of(record)) for record in records]
    rows = [_row(columns, database) for _, columns in told]
    with transaction.atomic(), database.cursor() as cursor:
        rollup_writing.lock(cursor)
        tally = rollup_writing.changes(told) if counted else {}
        cursor.executemany(_statement(newer), rows)
        written = int(cursor.rowcount)
        rollup_store.add_up(cursor, tally)
    return written


@cache
def _statement(newer: str) -> str:
    quote = connection.ops.quote_name
    table = quote(Run._meta.db_table)
    columns = [quote(str(field.column)) for field in _FIELDS]
    rank = {side: ", ".join(f"{side}.{quote(name)}" for name in _ORDER) for side in ("excluded", table)}
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"  # noqa: S608
        f" ON CONFLICT ({quote('job_id')}) DO UPDATE SET"
        f" {', '.join(f'{column} = excluded.{column}' for column in columns)}"
        f" WHERE ({rank['excluded']}) {newer} ({rank[table]})"
    )


def _row(values: Mapping[str, Any], database: BaseDatabaseWrapper) -> list[Any]:
    return [field.get_db_prep_save(values[field.attname], database) for field in _FIELDS]


def columns_of(record: Record) -> Mapping[str, Any]:
    """Say what each column of the record's row holds."""
    values: dict[str, Any] = {name: getattr(record, name) for name in _NAMES if name != "attempts"}
    values["attempts"] = [attempt.to_json() for attempt in record.attempts]
    values["position"] = position_ms(record)
    return values


def record_of(run: Run) -> Record:
    """Read a row as its record; DamagedRecordError when a later version's words stand in it."""
    return Record.from_json(as_recorded(run))


def as_recorded(run: Run) -> dict[str, Any]:
    """Write a row as its record's JSON object."""
    values = {name: getattr(run, name) for name in _NAMES}
    return {
        camel(name): iso(value) if isinstance(value, datetime) else value for name, value in values.items()
    }
