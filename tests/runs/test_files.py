from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.files import UNREADABLE, Entry, FileFault, RecordFiles, fault_of, stem
from runs.outcome import Outcome
from runs.record import DamagedRecordError, Record
from tests.harness.records import a_record

CASES = json.loads((Path(__file__).parents[1] / "vectors/run-history.json").read_text())["cases"]
VECTORS = [pytest.param(case, id=case["name"]) for case in CASES if case["in"]["op"] == "file"]


def entry(record: Record) -> Entry:
    return Entry(record, record.to_bytes())


@pytest.fixture
def files(tmp_path: Path) -> RecordFiles:
    return RecordFiles(tmp_path / "logs")


@contextmanager
def no_byte_can_be_written() -> Iterator[None]:
    """A full disk as a process without privileges can have it: each write fails, each file can be made.

    A test's database stays in its open transaction meanwhile, so it takes rows.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("case", VECTORS)
def test_a_file_is_named_as_the_reference_names_it(case):
    assert stem(str(case["in"]["id"])) == case["out"]["stem"]


@pytest.mark.parametrize(
    ("job_id", "expected"),
    [
        pytest.param("😀", "__", id="two units"),
        pytest.param("a\ud83d", "a_", id="half a pair"),
        pytest.param("é", "_", id="one unit"),
    ],
)
def test_characters_are_counted_in_utf_16_units(job_id, expected):
    assert stem(job_id) == expected


@given(st.text(max_size=400))
def test_no_id_leaves_the_folder_or_grows_beyond_a_file_name(job_id):
    name = stem(job_id)

    assert 1 <= len(name) <= 200
    assert "/" not in name
    assert "\0" not in name


def test_long_ids_that_begin_alike_stay_apart():
    assert stem("x" * 300 + "a") != stem("x" * 300 + "b")


def test_a_record_stands_in_one_line_that_only_its_owner_can_read(files):
    record = a_record()

    assert files.write([entry(record)]) == [None]

    path = files.folder / f"{record.job_id}.json"
    assert path.read_bytes() == record.to_bytes() + b"\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [item.name for item in files.folder.iterdir()] == [path.name]


def test_the_line_is_kept_as_it_came_with_keys_that_we_do_not_know(files):
    line = b'{"later": {"x": 1},\n "jobId":"a","outcome":"failed","attempt":0}'

    files.write([Entry(Record.from_bytes(line), line)])

    assert (files.folder / "a.json").read_bytes() == line.replace(b"\n", b" ") + b"\n"


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        pytest.param({"attempt": 0, "final": False}, {"attempt": 1}, 1, id="newer replaces"),
        pytest.param({"attempt": 1}, {"attempt": 0}, 0, id="older does not"),
        pytest.param({"turns": 1}, {"turns": 2}, 0, id="the same news twice is written once"),
    ],
)
def test_only_newer_news_replaces_a_file(files, first, second, kept):
    news = [a_record(**first), a_record(**second)]

    answers = [files.write([entry(record)]) for record in news]

    assert answers == [[None], [None]]
    assert files.find(news[0].job_id) == news[kept]


def test_ids_that_share_a_name_never_overwrite_each_other(files):
    ids = ["a b", "a_b", "a/b", "a:b"]
    records = [a_record(job_id=job_id) for job_id in ids]

    files.write([entry(record) for record in records[:2]])
    for record in records[2:]:
        files.write([entry(record)])
    files.write([entry(a_record(job_id="a/b", attempt=1))])

    assert [files.find(job_id).job_id for job_id in ids] == ids
    assert files.find("a/b").attempt == 1
    assert len(list(files.folder.iterdir())) == 4
    assert (files.folder / "a_b.json").is_file()


def test_a_job_keeps_its_marked_file_after_the_plain_one_is_gone(files):
    for job_id in ("a b", "a_b"):
        files.write([entry(a_record(job_id=job_id))])
    (files.folder / "a_b.json").unlink()

    files.write([entry(a_record(job_id="a_b", attempt=1))])

    assert len(list(files.folder.iterdir())) == 1
    assert files.find("a_b").attempt == 1
    assert files.find("a b") is None


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.write_bytes(b"{"), id="damaged"),
        pytest.param(lambda path: path.mkdir(), id="a folder"),
        pytest.param(os.mkfifo, id="a pipe"),
    ],
)
def test_what_stands_in_the_way_is_left_alone(files, make):
    files.folder.mkdir()
    make(files.folder / "a.json")
    before = (files.folder / "a.json").stat()

    assert files.write([entry(a_record(job_id="a"))]) == [None]

    assert files.find("a") == a_record(job_id="a")
    assert (files.folder / "a.json").stat() == before


def test_a_full_disk_is_answered_and_leaves_nothing_half_written(files):
    files.write([entry(a_record(1))])
    with no_byte_can_be_written():
        answers = files.write([entry(a_record(1, attempt=1)), entry(a_record(2))])

    assert answers == [FileFault.DISK_FULL, FileFault.DISK_FULL]
    assert files.find(a_record(1).job_id) == a_record(1)
    assert len(list(files.folder.iterdir())) == 1


def test_a_folder_that_is_no_folder_is_answered(tmp_path):
    (tmp_path / "logs").write_text("")

    assert RecordFiles(tmp_path / "logs").write([entry(a_record())]) == [FileFault.FOLDER_MISSING]


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ENOSPC, FileFault.DISK_FULL),
        (errno.EDQUOT, FileFault.DISK_FULL),
        (errno.EROFS, FileFault.READ_ONLY),
        (errno.EACCES, FileFault.NOT_PERMITTED),
        (errno.ENOENT, FileFault.FOLDER_MISSING),
        (errno.EIO, FileFault.IO_ERROR),
    ],
)
def test_a_fault_is_a_word_and_never_a_path(number, fault):
    assert fault_of(OSError(number, "text", "/srv/canary")) is fault


def test_every_file_is_read_with_its_name_or_why_not(files):
    files.write([entry(a_record(1)), entry(a_record(2, outcome=Outcome.FAILED))])
    (files.folder / "z.json").write_bytes(b"{")
    (files.folder / "z.log").write_bytes(b"{")
    (files.folder / "folder.json").mkdir()

    found = list(files.scan())

    assert [name for name, _ in found] == ["local-00000001.json", "local-00000002.json", "z.json"]
    assert [item for _, item in found[:2]] == [a_record(1), a_record(2, outcome=Outcome.FAILED)]
    assert isinstance(found[2][1], DamagedRecordError)


def test_bytes_that_are_no_record_are_set_aside_once(files):
    assert files.set_aside(b"garbage") is None
    assert files.set_aside(b"garbage") is None

    (kept,) = (files.folder / UNREADABLE).iterdir()
    assert kept.read_bytes() == b"garbage\n"
    assert list(files.scan()) == []


def test_half_written_files_of_a_killed_worker_are_swept(files):
    files.write([entry(a_record(job_id=".x.tmp"))])
    (files.folder / ".0123.tmp").write_bytes(b"{")

    files.sweep()

    assert [item.name for item in files.folder.iterdir()] == [".x.tmp.json"]


def test_nothing_is_found_where_nothing_is(files):
    assert files.find("a") is None
    files.sweep()
