from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from hypothesis import given, settings

from hosts.keys import pending_records
from pidispatch_site.errors import OperationalError
from runs import rollups
from runs.files import UNREADABLE, RecordFiles
from runs.models import Run
from runs.recorder import Recorder
from runs.rows import write
from tests.harness.records import NOON, a_record, records
from tests.runs.test_rows import table_renamed

HOST = "00ff00ff00ff00ff"


def every_shape(count):
    """Records as different as they come, each of another job."""
    found = []

    @settings(max_examples=count, database=None)
    @given(records())
    def collect(record):
        found.append(replace(record, job_id=f"{len(found)} {record.job_id}"))

    collect()
    return found


@pytest.fixture
def files(tmp_path, settings, db) -> RecordFiles:
    settings.PIDISPATCH = SimpleNamespace(
        logs_dir=tmp_path / "logs", capture_job_logs=True, state_dir=tmp_path / "state"
    )
    return RecordFiles(tmp_path / "logs")


def rebuild() -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("rebuildruns", stdout=out, stderr=err)
    except OperationalError as error:
        return out.getvalue(), f"{err.getvalue()}{error} [{error.exit_code}]"
    return out.getvalue(), err.getvalue()


def table() -> list[dict[str, object]]:
    return list(Run.objects.order_by("pk").values())


def test_the_rows_come_back_equal_in_every_column(files, valkey):
    shapes = every_shape(80)
    valkey.rpush(pending_records(HOST), *(record.to_bytes() for record in shapes))
    Recorder(valkey, HOST, files).drain_once(0)
    before = table()
    assert len(before) == len(shapes) > 50

    Run.objects.all().delete()
    out, err = rebuild()

    assert table() == before
    assert out.startswith(f"{len(shapes)} records read, {len(shapes)} rows written, 0 already newer.\n")
    assert err == ""


def test_rows_without_a_file_and_newer_rows_stay(files):
    recorder_wrote = [a_record(0), a_record(1)]
    files.write([_entry(record) for record in recorder_wrote])
    write([a_record(1, attempt=1), a_record(2)])

    out, _ = rebuild()

    assert [(run["job_id"], run["attempt"]) for run in table()] == [
        (a_record(0).job_id, 0),
        (a_record(1).job_id, 1),
        (a_record(2).job_id, 0),
    ]
    assert out.splitlines() == [
        "2 records read, 1 rows written, 1 already newer.",
        "Days counted anew for Insights: 1.",
    ]
    assert rollups.totals(NOON, NOON + timedelta(hours=1)).runs == 3


def test_damaged_files_are_named_counted_and_end_in_1_while_the_others_are_read(files):
    files.write([_entry(a_record(0))])
    (files.folder / "z.json").write_bytes(b'{"jobId": "canary"')
    files.set_aside(b"garbage")

    out, err = rebuild()

    assert len(table()) == 1
    assert out.startswith("1 records read, 1 rows written")
    assert "z.json is no record: not JSON" in err
    assert f"1 damaged records were set aside in {files.folder / UNREADABLE}" in err
    assert "1 files in" in err
    assert err.endswith("[1]")
    assert "canary" not in err


@pytest.mark.django_db(transaction=True)
def test_a_missing_logs_directory_and_a_broken_table_are_explained(files):
    assert "cannot be read: No such file or directory. [1]" in rebuild()[1]

    files.write([_entry(a_record(0))])
    with table_renamed():
        assert re.search(r"refused after 0 records: (no such table|relation)", rebuild()[1])


def _entry(record):
    from runs.files import Entry

    return Entry(record, record.to_bytes())
