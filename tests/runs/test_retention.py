from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from runs import rows
from runs.files import UNREADABLE
from runs.models import Run
from runs.record import Record
from runs.retention import prune_rows, reap_logs
from tests.harness.records import a_record

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def written(path, *, days_ago: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}")
    moment = (NOW - timedelta(days=days_ago)).timestamp()
    os.utime(path, (moment, moment))


@pytest.fixture
def logs(tmp_path):
    return tmp_path / "logs"


def test_old_files_are_reaped_by_their_own_age_and_each_is_told(logs, events):
    for name, age in {
        "a.json": 31,
        "a.log": 31,
        "b.json": 29,
        "c.txt": 99,
        f"{UNREADABLE}/d.json": 31,
    }.items():
        written(logs / name, days_ago=age)
    (logs / "folder.json").mkdir()
    os.utime(logs / "folder.json", (0, 0))
    (logs / "link.log").symlink_to("/nonexistent")

    assert reap_logs(logs, days=30, now=NOW) == 3

    left = sorted(str(path.relative_to(logs)) for path in logs.rglob("*"))
    assert left == ["b.json", "c.txt", "folder.json", "link.log", UNREADABLE]
    assert sorted(told["file"] for told in events()) == ["a.json", "a.log", "d.json"]
    assert {told["event"] for told in events()} == {"reaped_log"}


def test_zero_days_keep_everything(logs, db):
    written(logs / "a.json", days_ago=9999)
    rows.write([a_record()])

    assert reap_logs(logs, days=0, now=NOW) == 0
    assert prune_rows(days=0, now=NOW + timedelta(days=9999)) == 0


def test_a_logs_directory_that_is_not_there_yet_is_no_fault(logs, events):
    assert reap_logs(logs, days=30, now=NOW) == 0
    assert events() == []


def test_a_logs_directory_that_cannot_be_read_is_told(logs, events):
    logs.write_text("")

    assert reap_logs(logs, days=30, now=NOW) == 0

    assert events()[0] == {"event": "log_reaper_skipped", "reason": "folder-missing"}


def test_rows_are_pruned_by_when_the_run_ended_in_short_transactions(db, events):
    old = [a_record(number, ended_at=NOW - timedelta(days=401, seconds=number)) for number in range(1101)]
    young = a_record(5000, ended_at=NOW - timedelta(days=399))
    undated = Record(job_id="undated", outcome="failed", attempt=0)
    rows.write([*old, young, undated])

    assert prune_rows(days=400, now=NOW) == 1101

    assert set(Run.objects.values_list("pk", flat=True)) == {young.job_id, "undated"}
    assert events() == [{"event": "pruned_runs", "count": 1101}]
