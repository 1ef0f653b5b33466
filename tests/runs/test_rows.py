from __future__ import annotations

from contextlib import contextmanager

import pytest
from django.db import connection
from hypothesis import given, settings

from runs import rows
from runs.models import Run
from runs.outcome import Outcome
from runs.record import order
from runs.rows import RowFault
from tests.harness.records import NOON, a_record, records

pytestmark = pytest.mark.django_db


def stored() -> list[dict[str, object]]:
    return list(Run.objects.order_by("job_id").values())


@contextmanager
def table_renamed():
    """The table is away, as in a database that was never migrated."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_run RENAME TO away")
        try:
            yield
        finally:
            cursor.execute("ALTER TABLE away RENAME TO runs_run")


@contextmanager
def row_refused(job_id: str):
    """The database does not take the rows whose id is like this."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "CREATE OR REPLACE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'data_exception'; END $$"
            )
            each, does, of = "FOR EACH ROW ", "EXECUTE FUNCTION no()", " ON runs_run"
        else:
            each, does, of = "", "BEGIN SELECT RAISE(ABORT, 'no'); END", ""
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON runs_run {each}WHEN (NEW.job_id LIKE '{job_id}') {does}"
        )
        try:
            yield
        finally:
            cursor.execute(f"DROP TRIGGER refuse{of}")


def test_every_field_of_a_record_has_its_column():
    record = a_record()

    assert rows.write([record]) == [None]

    run = Run.objects.get()
    told = {name: getattr(record, name) for name in record.__dataclass_fields__ if name != "once"}
    assert {name: getattr(run, name) for name in told} == told | {"attempts": []}
    assert run.position == int(NOON.timestamp() * 1000)


def test_any_record_there_can_be_fits_the_table():
    newest = {}

    @settings(max_examples=60, database=None)
    @given(records())
    def write(record):
        known = newest.get(record.job_id)
        if known is None or order(record) > order(known):
            newest[record.job_id] = record
        assert rows.write([record]) == [None]

    write()
    assert {run["job_id"]: run for run in stored()} == {
        job_id: rows.columns_of(record) for job_id, record in newest.items()
    }


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        pytest.param({"attempt": 0, "final": False}, {"attempt": 1}, 1, id="newer replaces"),
        pytest.param({"final": False}, {"final": True}, 1, id="the final word replaces"),
        pytest.param(
            {"attempt": 2}, {"attempt": 1, "ended_at": NOON.replace(hour=23)}, 0, id="older does not"
        ),
        pytest.param({"turns": 1}, {"turns": 2}, 0, id="equal does not"),
    ],
)
def test_only_newer_news_replaces_a_row(first, second, kept):
    news = [a_record(**first), a_record(**second)]

    for record in news:
        assert rows.write([record]) == [None]

    assert stored() == [rows.columns_of(news[kept])]


def test_one_refused_row_holds_up_no_other():
    batch = [a_record(number) for number in range(4)]

    with row_refused(batch[1].job_id):
        answers = rows.write(batch)

    assert answers == [None, RowFault.REFUSED, None, None]
    assert Run.objects.count() == 3


def test_a_database_that_is_away_is_asked_only_twice(django_assert_max_num_queries):
    with table_renamed(), django_assert_max_num_queries(10):
        answers = rows.write([a_record(number) for number in range(50)])

    assert answers == [RowFault.UNAVAILABLE] * 50


def test_restoring_fills_a_row_of_equal_rank_and_leaves_newer_ones():
    rows.write([a_record(0), a_record(1, attempt=1)])
    Run.objects.filter(pk=a_record(0).job_id).update(scope_hash=None)

    changed = rows.restore([a_record(0), a_record(1, attempt=0), a_record(2)])

    assert changed == 2
    assert stored() == [
        rows.columns_of(a_record(0)),
        rows.columns_of(a_record(1, attempt=1)),
        rows.columns_of(a_record(2)),
    ]


def test_a_batch_is_a_few_statements_whatever_its_size(django_assert_max_num_queries):
    # A savepoint and its end; what there is, the upsert; the same of the rollups, whose room is looked up
    # the first time. PostgreSQL has a lock beside it.
    with django_assert_max_num_queries(8):
        rows.write([a_record(number, outcome=Outcome.FAILED) for number in range(64)])
