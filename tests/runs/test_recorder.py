from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hosts.keys import pending_records
from runs import mirror
from runs.files import UNREADABLE, RecordFiles
from runs.mirror import INDEX, Mirror
from runs.models import Run
from runs.record import Record
from runs.recorder import Backoff, Follows, Recorder
from tests.harness.recording import HOST_ID
from tests.harness.records import a_record
from tests.runs.test_files import no_byte_can_be_written
from tests.runs.test_rows import row_refused, table_renamed

KEY = pending_records(HOST_ID)
NEWS = a_record(ended_at=datetime.now(UTC).replace(microsecond=0))
ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path) -> RecordFiles:
    return RecordFiles(tmp_path / "logs")


@pytest.fixture
def recorder(valkey, files, db) -> Recorder:
    return Recorder(valkey, HOST_ID, files, batch=8, backoff=Backoff(first=1, longest=4))


@pytest.fixture
def mirroring(valkey, files, db) -> Recorder:
    """A recorder of a host in a fleet."""
    return Recorder(valkey, HOST_ID, files, mirror=Mirror(valkey, retention_days=30))


def push(valkey: redis.Redis, *records: Record | bytes) -> None:
    valkey.rpush(KEY, *(item if isinstance(item, bytes) else item.to_bytes() for item in records))


def test_a_pending_record_becomes_a_file_and_a_row_and_leaves_the_list(recorder, valkey, files, events):
    push(valkey, *(a_record(number) for number in range(20)))

    assert recorder.drain_once(0) == 20

    assert valkey.llen(KEY) == 0
    assert [record for _, record in files.scan()] == [a_record(number) for number in range(20)]
    assert Run.objects.count() == 20
    assert events() == []


def test_an_empty_list_costs_one_command(recorder, valkey):
    before = valkey.info("stats")["total_commands_processed"]

    assert recorder.drain_once(0) == 0

    # INFO itself is counted.
    assert valkey.info("stats")["total_commands_processed"] - before == 2


def test_the_same_record_twice_and_attempts_in_any_order_leave_the_newest(recorder, valkey, files):
    newest = a_record(attempt=1)
    push(valkey, newest, a_record(final=False), newest, a_record(turns=9))

    assert recorder.drain_once(0) == 4

    assert valkey.llen(KEY) == 0
    assert files.find(newest.job_id) == newest
    assert Run.objects.get().attempt == 1


def test_a_full_disk_keeps_the_row_says_why_once_and_writes_the_file_later(recorder, valkey, files, events):
    push(valkey, a_record(0), a_record(1))
    with no_byte_can_be_written():
        assert recorder.drain_once(0) == 0
        assert recorder.drain_once(1) == 0

    assert Run.objects.count() == 2
    assert valkey.llen(KEY) == 2
    told = {"event": "run_record_failed", "missing": "file", "reason": "disk-full"}
    assert events() == [told | {"jobId": a_record(0).job_id}, told | {"jobId": a_record(1).job_id}]

    assert recorder.drain_once(2) == 0, "the pause is two seconds by now"
    assert recorder.drain_once(3) == 2

    assert valkey.llen(KEY) == 0
    assert files.find(a_record(1).job_id) == a_record(1)
    assert events()[2:] == [{"event": "run_record_restored", "count": 2}]


def test_a_database_that_is_away_keeps_the_file_and_gets_the_row_later(recorder, valkey, files, events):
    push(valkey, a_record())
    with table_renamed():
        assert recorder.drain_once(0) == 0
    assert files.find(a_record().job_id) == a_record()
    assert (events()[0]["missing"], events()[0]["reason"]) == ("row", "database-unavailable")

    assert recorder.drain_once(1) == 1

    assert Run.objects.count() == 1


def test_what_fails_holds_up_nothing_that_comes_after_it(recorder, valkey):
    bad = [a_record(number) for number in range(20)]
    with no_byte_can_be_written():
        push(valkey, *bad)
        recorder.drain_once(0)
    with row_refused("local-000003e8"):
        push(valkey, a_record(1000), a_record(1001))

        assert recorder.drain_once(0.5) == 1, "the held ones wait out their pause, the new one does not"
        assert recorder.drain_once(1) == 20, "one that stays bad holds up no other that is held"

    assert valkey.llen(KEY) == 1
    assert recorder.drain_once(2) == 1


def test_more_bad_entries_than_a_batch_do_not_hide_those_behind_them(recorder, valkey):
    with no_byte_can_be_written():
        push(valkey, *(a_record(number, job_id=f"bad-{number}") for number in range(9)), a_record(100))
        recorder.drain_once(0)

    with row_refused("bad-%"):
        assert recorder.drain_once(1) == 0
        assert recorder.drain_once(3) == 1

    assert valkey.llen(KEY) == 9


def test_the_pause_grows_to_its_bound_and_shrinks_when_something_gets_better(recorder, valkey):
    push(valkey, a_record())
    with row_refused(a_record().job_id):
        tried = []
        for now in range(16):
            before = valkey.info("commandstats").get("cmdstat_lrange", {"calls": 0})["calls"]
            recorder.drain_once(now)
            calls = valkey.info("commandstats")["cmdstat_lrange"]["calls"] - before
            if calls == 2:
                tried.append(now)

    assert tried == [1, 3, 7, 11, 15]


def test_an_entry_that_is_no_record_is_set_aside_and_blocks_nothing(recorder, valkey, files, events):
    push(valkey, b"garbage", a_record(), b'{"jobId":"x"}')

    assert recorder.drain_once(0) == 3

    assert valkey.llen(KEY) == 0
    assert len(list((files.folder / UNREADABLE).iterdir())) == 2
    assert events() == [{"event": "run_record_failed", "missing": "record", "reason": "unreadable"}] * 2


def test_an_entry_that_cannot_be_set_aside_stays(recorder, valkey):
    push(valkey, b"garbage", a_record())
    with no_byte_can_be_written():
        assert recorder.drain_once(0) == 0
    assert valkey.llen(KEY) == 2

    assert recorder.drain_once(1) == 2


def test_a_list_that_another_host_moved_over_does_not_confuse(recorder, valkey):
    with no_byte_can_be_written():
        push(valkey, *(a_record(number) for number in range(20)))
        recorder.drain_once(0)
    valkey.delete(KEY)
    push(valkey, a_record(100))

    recorder.drain_once(1)

    assert valkey.llen(KEY) == 0
    assert Run.objects.filter(pk=a_record(100).job_id).exists()


@contextmanager
def mirror_refused(valkey):
    valkey.set(INDEX, "no index")
    yield
    valkey.delete(INDEX)


@pytest.mark.parametrize(
    ("fault", "left", "kept"),
    [
        pytest.param(lambda _: no_byte_can_be_written(), 1, {"row", "mirror"}, id="file"),
        pytest.param(lambda _: table_renamed(), 1, {"file", "mirror"}, id="row"),
        pytest.param(mirror_refused, 0, {"file", "row"}, id="mirror"),
    ],
)
def test_file_row_and_mirror_are_each_tried_and_the_mirror_holds_nothing_back(
    fault, left, kept, mirroring, valkey, files, events
):
    push(valkey, NEWS)
    with fault(valkey):
        mirroring.drain_once(0)
        mirroring.drain_once(0)
    found = {
        "file": files.find(NEWS.job_id) == NEWS,
        "row": Run.objects.filter(pk=NEWS.job_id).exists(),
        "mirror": mirror.read(valkey, wanted=1).records == (NEWS,),
    }

    assert {place for place, is_kept in found.items() if is_kept} == kept
    assert valkey.llen(KEY) == left
    assert len(events()) == 1

    assert mirroring.drain_once(5) == left
    assert valkey.llen(KEY) == 0


def test_a_crash_before_the_entries_leave_the_list_repeats_the_mirror(mirroring, valkey, files):
    push(valkey, NEWS)
    stops = Recorder(valkey, HOST_ID, files, reached=stop_at("filed"))
    with pytest.raises(KeyboardInterrupt):
        stops.drain_once(0)

    mirroring.drain_once(0)

    assert mirror.read(valkey, wanted=1).records == (NEWS,)


def test_what_file_and_row_hold_is_told_before_it_leaves_the_list(valkey, files, db):
    told = []
    recorder = Recorder(
        valkey,
        HOST_ID,
        files,
        follows=Follows(written=lambda record: told.append((record, valkey.llen(KEY)))),
        batch=8,
    )
    with row_refused(a_record(1).job_id):
        push(valkey, a_record(), a_record(1), a_record(final=False), b"garbage")
        recorder.drain_once(0)
        assert told == [(a_record(), 4)]
    recorder.drain_once(1)

    assert told[1:] == [(a_record(1), 1)]


def test_a_crash_before_the_entry_leaves_the_list_tells_it_again(recorder, valkey, files):
    push(valkey, NEWS)
    told = []
    for _ in range(2):
        stops = Recorder(
            valkey, HOST_ID, files, follows=Follows(written=told.append), reached=stop_at("told")
        )
        with pytest.raises(KeyboardInterrupt):
            stops.drain_once(0)

    assert told == [NEWS, NEWS]


def stop_at(point):
    def reached(name):
        if name == point:
            raise KeyboardInterrupt

    return reached


def test_a_host_that_is_not_in_a_fleet_sends_no_command_of_the_mirror(recorder, valkey):
    push(valkey, NEWS)
    valkey.config_resetstat()

    recorder.drain_once(0)

    sent = {name for name, one in valkey.info("commandstats").items() if one["calls"]}
    assert sent <= {f"cmdstat_{name}" for name in ("lrange", "lrem", "config|resetstat", "info")}
    assert valkey.keys("runs:*") == []


def test_valkey_being_away_is_told_to_who_drains(files, db, valkey):
    away = Recorder(redis.Redis(unix_socket_path="/nonexistent", retry=Retry(NoBackoff(), 0)), HOST_ID, files)

    with pytest.raises(redis.exceptions.ConnectionError):
        away.drain_once(0)


@pytest.mark.django_db(transaction=True)
def test_the_loop_drains_when_woken_and_once_more_at_its_end(valkey, files):
    looks: list[int] = []
    between = Follows(between=lambda: looks.append(valkey.llen(KEY)))
    recorder = Recorder(valkey, HOST_ID, files, follows=between)
    stop = threading.Event()
    thread = threading.Thread(target=recorder.run, args=(stop,), kwargs={"interval_seconds": 60})
    thread.start()
    try:
        push(valkey, a_record(0))
        recorder.wake()
        wait_until(lambda: valkey.llen(KEY) == 0)
        push(valkey, a_record(1))
    finally:
        stop.set()
        recorder.wake()
        thread.join(timeout=10)

    assert not thread.is_alive()
    assert Run.objects.count() == 2
    assert len(looks) >= 2


def wait_until(holds, *, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Home:
    """A recorder process's home, and what an outsider finds there afterwards."""

    def __init__(self, path: Path, socket: Path) -> None:
        self.path = path
        self.socket = socket

    def start(self, point: str | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.harness.recording", self.path, self.socket]
        return subprocess.Popen(
            [*command, *([point] if point else [])], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    def drain(self, point: str | None = None) -> int:
        child = self.start(point)
        child.communicate(timeout=60)
        return child.returncode

    def rows(self) -> list[tuple[str, int]]:
        with sqlite3.connect(self.path / "db.sqlite3") as database:
            found = database.execute("SELECT job_id, attempt FROM runs_run ORDER BY job_id").fetchall()
        database.close()
        return found

    def files(self) -> list[tuple[str, int]]:
        found = [record for _, record in RecordFiles(self.path / "logs").scan()]
        return sorted((record.job_id, record.attempt) for record in found if isinstance(record, Record))


@pytest.fixture
def home(tmp_path, valkey_server) -> Home:
    return Home(tmp_path, valkey_server)


@pytest.mark.parametrize("point", ["filed", "written", "removed"])
def test_a_recorder_killed_at_any_step_loses_and_doubles_nothing(point, home, valkey):
    push(valkey, *(a_record(number) for number in range(12)), a_record(3, attempt=1))
    expected = [(a_record(number).job_id, int(number == 3)) for number in range(12)]

    assert home.drain(point) == -signal.SIGKILL
    assert valkey.llen(KEY) > 0
    assert home.drain() == 0

    assert valkey.llen(KEY) == 0
    assert home.rows() == expected
    assert home.files() == expected


def test_a_recorder_killed_again_and_again_at_any_moment_gets_everything_written(home, valkey):
    count = 1000
    push(valkey, *(a_record(number) for number in range(count)))
    chance = random.Random(7)

    kills = 0
    for _ in range(6):
        child = home.start()
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.01, 0.1))
        kills += child.poll() is None
        child.kill()
        child.communicate(timeout=60)
    assert home.drain() == 0

    expected = [(a_record(number).job_id, 0) for number in range(count)]
    assert kills >= 2
    assert valkey.llen(KEY) == 0
    assert home.rows() == expected
    assert home.files() == expected
