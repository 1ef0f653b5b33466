from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from runs.output import CUT, RawLog
from runs.protocols import EngineNotFoundError, EngineSilentError


class Printer:
    """A backend whose only container prints what a test says."""

    def __init__(self, *pieces: bytes | Exception, stays_open: bool = False) -> None:
        self.pieces = list(pieces)
        self.given = 0
        self._closed = threading.Event()
        self._stays_open = stays_open

    def follow(self, container: str) -> Printer:
        if not container:
            raise EngineNotFoundError
        return self

    def read(self) -> bytes:
        if self._closed.is_set():
            return b""
        if self.pieces:
            piece = self.pieces.pop(0)
            if isinstance(piece, Exception):
                raise piece
            self.given += len(piece)
            return piece
        if self._stays_open:
            self._closed.wait(20)
        return b""

    def close(self) -> None:
        self._closed.set()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.log"


def log_of(printer: Printer, path: Path, *, container: str = "c", **settings: int) -> RawLog:
    log = RawLog(printer, container=container, path=path, **settings)
    log.start()
    return log


def test_the_file_is_the_output_and_private(path):
    log = log_of(Printer(b"one\n", b"two\n"), path)

    log.finish(b"two\n")

    assert path.read_bytes() == b"one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert not log.truncated


def test_the_first_log_of_a_fresh_host_makes_its_private_folder(tmp_path):
    path = tmp_path / "logs" / "job.log"

    log_of(Printer(b"one\n"), path).finish(b"one\n")

    assert path.read_bytes() == b"one\n"
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_second_attempt_is_appended(path):
    path.write_bytes(b"first\n")

    log_of(Printer(b"second\n"), path).finish(b"second\n")

    assert path.read_bytes() == b"first\nsecond\n"


def test_an_output_of_nothing_is_whole(path):
    log = log_of(Printer(), path)

    log.finish(b"")

    assert (path.read_bytes(), log.truncated) == (b"", False)


def test_an_output_that_is_unknown_at_the_end_is_taken_as_it_was_followed(path):
    log = log_of(Printer(b"all\n"), path)

    log.finish(b"")

    assert not log.truncated


@pytest.mark.parametrize(
    "printer",
    [
        pytest.param(Printer(b"begun\n", stays_open=True), id="still behind when it was over"),
        pytest.param(Printer(b"begun\n", EngineSilentError("broken")), id="the engine broke it off"),
        pytest.param(Printer(b"begun\n"), id="it ended cleanly but too early, as an engine that dies does"),
    ],
)
def test_what_is_missing_is_said_and_the_true_end_follows(path, printer):
    log = log_of(printer, path)

    log.finish(b"the end\n", patience=0.2)

    assert path.read_bytes() == b"begun\n" + CUT + b"the end\n"
    assert log.truncated


def test_a_container_that_is_gone_leaves_only_its_end(path):
    log = log_of(Printer(), path, container="")

    log.finish(b"end\n")

    assert path.read_bytes() == CUT + b"end\n"


def test_a_flood_is_followed_only_as_far_as_there_is_room(path):
    printer = Printer(*[b"0123456789\n" * 10] * 1000)
    log = log_of(printer, path, followed_bytes=10_000)

    log.finish(b"end\n", patience=5)

    kept, _, end = path.read_bytes().partition(CUT)
    # Each line of 11 bytes takes 91 in the engine's log: ten pieces of ten lines fit.
    assert (len(kept), end) == (110 * 10, b"end\n")
    assert printer.given < 110 * 15


def test_finishing_takes_no_longer_than_its_patience(path):
    log = log_of(Printer(b"x", stays_open=True), path)
    began = time.monotonic()

    log.finish(b"y", patience=0.3)

    assert 0.25 < time.monotonic() - began < 0.9


def test_a_reader_of_much_takes_a_small_share_of_the_processor(path):
    log = log_of(Printer(*[b"x" * 200 + b"\n"] * 200_000), path, followed_bytes=10**9)
    time.sleep(0.2)
    thread = log._thread
    before, began = _processor_seconds(thread), time.monotonic()
    time.sleep(1.0)
    share = (_processor_seconds(thread) - before) / (time.monotonic() - began)
    log.finish(b"", patience=0)

    assert share < 0.3


@pytest.mark.parametrize("where", ["a folder that is a file", "a link", "a full disk"])
def test_a_file_that_cannot_be_written_is_no_error(tmp_path, where):
    target = {
        "a folder that is a file": tmp_path / "file" / "job.log",
        "a link": tmp_path / "link",
        "a full disk": Path("/dev/full"),
    }[where]
    (tmp_path / "file").touch()
    if where == "a link":
        (tmp_path / "elsewhere").write_bytes(b"untouched")
        target.symlink_to(tmp_path / "elsewhere")
    log = log_of(Printer(b"data"), target)

    log.finish(b"data")

    assert log.truncated
    if where == "a link":
        assert (tmp_path / "elsewhere").read_bytes() == b"untouched"


def _processor_seconds(thread: threading.Thread) -> float:
    fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
