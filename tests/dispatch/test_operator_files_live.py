"""A file that is followed: every way in which an operator, an editor or a deployment changes one."""

from __future__ import annotations

import mmap
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from dispatch.operator_files import strict_json
from dispatch.operator_files.content import opened, read_from
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.overlay_file import read as read_overlay
from dispatch.operator_files.problems import OperatorFileError, Problem
from dispatch.operator_files.strict_json import MAX_BYTES
from dispatch.worker.timings import WorkerTimings


def parse(content: bytes) -> int:
    """`{"rows": N}`; every other key is a problem of its own."""
    found = strict_json.load(content, name="the file")
    if problems := [Problem(f"rows[{key}]", "is secret-value") for key in found if key != "rows"]:
        raise OperatorFileError("the file", problems)
    return found["rows"]


def rows(number: int) -> bytes:
    return b'{"rows": %d}' % number


class Followed:
    """A file of three rows, loaded at boot, under a clock that the test sets."""

    def __init__(self, path: Path, events: Callable[[], list[dict[str, object]]], **options: object) -> None:
        self.path, self._events, self.now = path, events, 0.0
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(rows(3))
        self.file = LiveFile(path, parse, label="pause_windows", count=int, clock=lambda: self.now, **options)
        self.file.load()

    def looks(self, times: int = 2) -> list[bool]:
        return [self.file.poll() for _ in range(times)]

    def said(self) -> list[tuple[object, ...]]:
        """Each event and what it tells, but for the first, which names the place."""
        first, *rest = (
            (one.pop("event").removeprefix("pause_windows_"), *one.values()) for one in self._events()
        )
        assert first == ("watching", str(self.path))
        return rest


@pytest.fixture
def followed(tmp_path, events):
    return Followed(tmp_path / "etc" / "file.json", events)


def test_an_edit_counts_at_the_second_look_and_is_said_once(followed):
    # Already made when the first look comes: between the boot's reading and the watch.
    followed.path.write_bytes(rows(5))

    assert (followed.looks(1), followed.file.current) == ([False], 3)
    assert (followed.looks(1), followed.file.current) == ([True], 5)
    assert followed.looks(3) == [False] * 3
    assert followed.said() == [("reloaded", 5)]


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        path.unlink()
        make(path)

    return spoil


def file_above(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("")


# What is done to the file, the reason in the log, the words at boot.
BAD = {
    "deleted": (Path.unlink, "missing", "does not exist; create it"),
    "folder is a file": (file_above, "unreadable", "cannot be read (Not a directory)"),
    "a directory": (instead(Path.mkdir), "not-a-file", "is no regular file"),
    "a pipe": (instead(os.mkfifo), "not-a-file", "is no regular file"),
    "a device": (instead(lambda path: path.symlink_to("/dev/zero")), "not-a-file", "is no regular file"),
    "a link to itself": (
        instead(lambda path: path.symlink_to(path)),
        "unreadable",
        "cannot be read (Too many levels of symbolic links)",
    ),
    "too large": (lambda path: os.truncate(path, 50_000_000), "too-large", f"allowed are {MAX_BYTES} bytes"),
    "no JSON": (lambda path: path.write_bytes(b"{"), "file", "is not JSON"),
    "many problems": (
        lambda path: path.write_bytes(b"{%s}" % b",".join(b'"%d": 1' % number for number in range(13))),
        "".join(f"rows[{number}], " for number in range(9)) + "rows[9] and 3 more",
        "rows[12] is secret-value",
    ),
}


@pytest.mark.parametrize(("spoil", "reason", "_"), BAD.values(), ids=BAD)
def test_what_cannot_be_taken_changes_nothing_is_said_once_and_so_is_its_end(followed, spoil, reason, _):
    spoil(followed.path)

    assert followed.looks(5) == [False] * 5
    assert followed.file.current == 3
    assert followed.said() == [("reload_invalid", reason)]

    shutil.rmtree(followed.path.parent, ignore_errors=True)
    followed.path.parent.unlink(missing_ok=True)
    followed.path.parent.mkdir()
    followed.path.write_bytes(rows(3))
    assert followed.looks(3) == [False] * 3
    assert followed.said()[1:] == [("reloaded", 3)]


@pytest.mark.parametrize(("spoil", "_", "words"), BAD.values(), ids=BAD)
def test_what_cannot_be_taken_at_boot_is_told_in_words_and_not_again_by_the_log(followed, spoil, _, words):
    spoil(followed.path)

    with pytest.raises(OperatorFileError) as raised:
        followed.file.load()

    assert words in raised.value.problems[-1]
    assert followed.looks() == [False, False]
    assert followed.said() == []


def test_what_stands_there_is_told_apart_from_what_was_taken_over(followed):
    file, told = followed.file, []
    for content in (rows(3), b"{", b"{", rows(3), rows(4)):
        followed.path.write_bytes(content)
        followed.looks()
        told.append((file.version, file.is_current))

    assert told == [(1, True), (1, False), (1, False), (2, True), (3, True)]


def test_of_triggers_it_is_said_what_is_wrong_and_not_what_comes_of_the_rest(tmp_path, events):
    path = tmp_path / "triggers.json"
    path.write_bytes(rows(3))
    file = LiveFile(path, parse, label="triggers", count=int)
    file.load()
    for content in (b"{", rows(4)):
        path.write_bytes(content)
        looked = [file.poll(), file.poll()]

    assert (looked, file.current) == ([False, True], 4)
    assert events() == [
        {"event": "triggers_watching", "path": str(path)},
        {"event": "schedules_reload_invalid", "reason": "file", "kept": True},
    ]


@pytest.fixture
def slow(followed, monkeypatch) -> Iterator[tuple[Followed, int]]:
    """A file that is a regular one, as FUSE has them, and answers only what was written to it so far."""
    followed.path.unlink()
    os.mkfifo(followed.path)
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: True)
    descriptor = os.open(followed.path, os.O_RDWR | os.O_NONBLOCK)
    yield followed, descriptor
    os.close(descriptor)


@pytest.mark.parametrize("part", [b"", b"{}"])
def test_a_file_without_an_answer_yet_cannot_be_read_and_a_part_is_no_answer(slow, part):
    followed, descriptor = slow

    def answering(step: Callable[[], object]) -> object:
        os.write(descriptor, part)
        return step()

    assert [answering(followed.file.poll) for _ in range(3)] == [False] * 3
    assert followed.file.current == 3
    assert followed.said() == [("reload_invalid", "unreadable")]
    for read in (followed.file.load, lambda: read_overlay(followed.path, settle=lambda: None)):
        with pytest.raises(OperatorFileError, match="Resource temporarily unavailable"):
            answering(read)


@pytest.mark.parametrize("missing", [None, 0])
def test_before_the_first_good_version_there_is_at_most_what_an_absent_file_means(tmp_path, missing):
    file = LiveFile(tmp_path, parse, label="settings", count=int, missing=missing)

    with pytest.raises(OperatorFileError):
        file.load()
    with pytest.raises(LookupError) if missing is None else nullcontext():
        assert file.current == 0


def test_a_file_that_need_not_exist_has_a_value_without_it(tmp_path, events):
    followed = Followed(tmp_path / "file.json", events, missing=0)

    followed.path.unlink()
    assert (followed.looks(), followed.file.current) == ([False, True], 0)
    assert followed.file.load() == 0
    followed.path.write_bytes(b"{")
    assert (followed.looks(), followed.file.current) == ([False, False], 0)
    followed.path.write_bytes(rows(7))
    assert (followed.looks(), followed.file.current) == ([False, True], 7)
    assert followed.said() == [("reloaded", 0), ("reload_invalid", "file"), ("reloaded", 7)]


def test_what_is_being_written_is_not_judged(followed):
    followed.path.unlink()
    followed.looks(1)
    for half in (b"", b'{"ro', b'{"rows":'):
        followed.path.write_bytes(half)
        followed.looks(1)
    followed.path.write_bytes(rows(8))

    assert followed.looks() == [False, True]
    assert followed.said() == [("reloaded", 8)]


def test_an_edit_that_stat_does_not_show_is_seen(followed):
    # Like a second edit within one tick of the file system's clock: pages that are mapped get no new times.
    with followed.path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = rows(4)
        followed.looks()
        before = followed.path.stat()
        mapped[:] = rows(6)
        now = followed.path.stat()

        assert (before.st_mtime_ns, before.st_ctime_ns) == (now.st_mtime_ns, now.st_ctime_ns)
        assert followed.looks() == [False, True]
        assert followed.file.current == 6


def read_by_a_look(followed: Followed) -> int:
    def read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read()
    followed.looks(1)
    return read() - before


def test_a_settled_file_is_not_read_again_until_it_changes(followed):
    followed.path.write_bytes(rows(4) + b" " * 500_000)

    read = []
    for followed.now in (0.0, 1.9, 2.1, 9.0):
        read.append(read_by_a_look(followed) > 500_000)
    os.utime(followed.path)

    assert read == [True, True, False, False]
    assert read_by_a_look(followed) > 500_000
    assert followed.said() == [("reloaded", 4)]


def write_nine(path: Path) -> None:
    path.write_bytes(rows(9))


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Make it beside the path and move it there in one step, as careful programs do."""
    fresh = path.with_name(f"{path.name}.fresh")
    make(fresh)
    fresh.replace(path)


def moved_behind_a_link(path: Path) -> Path:
    target = path.parent.parent / "target.json"
    path.rename(target)
    path.symlink_to(target)
    return target


def point_the_link_elsewhere(path: Path) -> None:
    other = moved_behind_a_link(path).with_name("other.json")
    write_nine(other)
    replace(path, lambda fresh: fresh.symlink_to(other))


def mount_a_config_map(path: Path) -> None:
    """The file is a link into `..data`, itself a link that is swapped."""
    for number in (3, 9):
        data = path.parent / f"..{number}"
        data.mkdir()
        (data / path.name).write_bytes(rows(number))
        replace(path.parent / "..data", lambda fresh, data=data: fresh.symlink_to(data.name))
        if not path.is_symlink():
            replace(path, lambda fresh: fresh.symlink_to(Path("..data", path.name)))


def swap_the_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("old"))
    path.parent.mkdir()
    write_nine(path)


def keep_the_old_time(path: Path) -> None:
    before = path.stat()
    write_nine(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


EDITS = {
    "in place": write_nine,
    "replaced": lambda path: replace(path, write_nine),
    "with its old time": keep_the_old_time,
    "through a link": lambda path: write_nine(moved_behind_a_link(path)),
    "behind a link": lambda path: replace(moved_behind_a_link(path), write_nine),
    "link pointed elsewhere": point_the_link_elsewhere,
    "config map": mount_a_config_map,
    "folder swapped": swap_the_folder,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_is_seen_however_it_is_made_after_a_long_rest(followed, edit):
    followed.looks()
    followed.now = 100.0
    followed.looks()

    edit(followed.path)

    assert followed.looks() == [False, True]
    assert followed.said() == [("reloaded", 9)]


@pytest.fixture
def watched(followed):
    """The file, looked at by a thread as the worker does it."""
    stopping = threading.Event()

    def watch() -> None:
        while not stopping.wait(WorkerTimings().look_every):
            followed.file.poll()

    thread = threading.Thread(target=watch)
    thread.start()
    yield followed
    stopping.set()
    thread.join(timeout=10)


def seconds_until(file: LiveFile[int], value: int) -> float:
    began = time.monotonic()
    while file.current != value:
        assert time.monotonic() - began < 5, f"{file.current} is no {value}"
        time.sleep(0.005)
    return time.monotonic() - began


@pytest.mark.parametrize("edits", [0, 50])
def test_the_last_of_many_edits_takes_effect_within_a_second(watched, edits):
    for number in range(edits):
        content = b"{" if number % 10 == 9 else rows(100 + number)
        if number % 2:
            watched.path.write_bytes(content)
        else:
            replace(watched.path, lambda fresh, content=content: fresh.write_bytes(content))
        time.sleep(0.02)
    watched.path.write_bytes(rows(200))

    assert seconds_until(watched.file, 200) < 1
    assert watched.said()[-1] == ("reloaded", 200)


@pytest.mark.parametrize(
    ("size", "read"), [(0, 0), (3 * 2**20 + 5, 3 * 2**20 + 5), (50_000_000, MAX_BYTES + 1)]
)
def test_a_file_is_read_whole_but_never_much_more_than_is_allowed(tmp_path, size, read):
    path = tmp_path / "operator.json"
    path.touch()
    os.truncate(path, size)

    with opened(path) as (descriptor, _):
        assert len(read_from(descriptor)) == read
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == read
