"""The writer: its lock, the race for a stale one, what an editor does meanwhile, what is kept."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dispatch.operator_files.problems import OperatorFileError
from dispatch.triggers import editing, lock, writing
from dispatch.triggers.lock import LockedError
from dispatch.triggers.writing import EditedMeanwhileError, Patience, preview, rewrite
from pidispatch_site.errors import OperationalError
from tests.dispatch.triggers.one_shots import cron, entries_of, written


@pytest.fixture
def path(tmp_path) -> Path:
    return written(tmp_path / "triggers.json", cron("a"))


def adding(id_: str) -> Any:
    return lambda document: editing.add(document, cron(id_))


def left_in(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir() if one.name != path.name)


def lock_of(path: Path, *, age: float) -> Path:
    """Leave a lock whose maker is gone, or on another machine."""
    found = path.with_name(f"{path.name}.lock")
    found.touch()
    os.utime(found, (time.time() - age,) * 2)
    return found


def test_the_result_is_written_as_the_file_is_kept(path):
    before = path.read_bytes()
    path.chmod(0o640)
    inode = path.stat().st_ino

    found = rewrite(path, adding("b"))

    assert entries_of(path) == [cron("a"), cron("b")]
    assert path.read_bytes() == (json.dumps({"triggers": [cron("a"), cron("b")]}, indent=2) + "\n").encode()
    assert (found.before, found.after) == (before, path.read_bytes())
    assert (path.stat().st_mode & 0o777, left_in(path)) == (0o640, [])
    assert path.stat().st_ino != inode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(path):
    os.chown(path, 1001, 1002)

    rewrite(path, adding("b"))

    assert (path.stat().st_uid, path.stat().st_gid) == (1001, 1002)


def test_a_link_goes_on_pointing_at_the_file(path, tmp_path):
    link = tmp_path / "elsewhere" / "link.json"
    link.parent.mkdir()
    link.symlink_to(path)

    rewrite(link, adding("b"))

    assert link.is_symlink()
    assert entries_of(path) == [cron("a"), cron("b")]
    assert [one.name for one in link.parent.iterdir()] == ["link.json"]


def test_a_byte_order_mark_and_foreign_text_do_no_harm(path):
    raw = {"triggers": [{**cron("a"), "note": "é😀 \ud800"}], "n": 2**60, "f": 1.5}
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(raw).replace(",", ",\r\n").encode())

    rewrite(path, adding("b"))

    assert json.loads(path.read_bytes()) == {**raw, "triggers": [raw["triggers"][0], cron("b")]}


@pytest.mark.parametrize(
    ("content", "change", "says"),
    [
        pytest.param(
            b'{"triggers": [], "triggers": []}', adding("b"), "twice in one object", id="double key"
        ),
        pytest.param(b"{", adding("b"), "is not JSON", id="no JSON"),
        pytest.param(b"{}", lambda document: {**document, "triggers": [1]}, "index 0", id="does not load"),
        pytest.param(None, adding("b"), "does not exist", id="missing"),
    ],
)
def test_what_does_not_load_is_refused_and_nothing_changes(path, content, change, says):
    path.unlink() if content is None else path.write_bytes(content)

    for work in (rewrite, preview):
        with pytest.raises(OperatorFileError, match=says):
            work(path, change)

    assert (path.read_bytes() if path.exists() else None) == content
    assert left_in(path) == []


def test_a_missing_file_is_made_only_where_that_is_asked_for(tmp_path):
    path = tmp_path / "new.json"

    seen = preview(path, adding("a"), create_missing=True)
    assert not path.exists()
    assert rewrite(path, adding("a"), create_missing=True) == seen

    assert entries_of(path) == [cron("a")]
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_nothing_is_to_be_done_nothing_is_touched(path):
    before = path.stat()

    found = rewrite(path, lambda _: None)

    assert found.before == found.after == path.read_bytes()
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_folder_that_takes_no_file_is_said_in_words(tmp_path):
    with pytest.raises(OperationalError, match=r"cannot be written: No such file.*Nothing was changed"):
        rewrite(tmp_path / "no" / "t.json", adding("a"), create_missing=True)


def test_what_breaks_while_writing_leaves_nothing(path, monkeypatch):
    before = path.read_bytes()
    for refused, says in (
        (PermissionError(1, "no"), r"no\. Nothing was changed\.$"),
        (OSError(errno.ENOSPC, "No space left"), r"left\. Nothing was changed\.$"),
        # A file that is mounted by itself.
        (OSError(errno.EBUSY, "Device or resource busy"), "mount its folder instead"),
    ):
        monkeypatch.setattr(Path, "replace", _raising(refused))
        with pytest.raises(OperationalError, match=f"cannot be written: .*{says}"):
            rewrite(path, adding("b"))
        monkeypatch.undo()

    assert (path.read_bytes(), left_in(path)) == (before, [])


def _raising(error: OSError) -> Any:
    def refuse(self: Path, target: Path) -> None:
        raise error

    return refuse


def test_a_rename_that_is_not_permitted_is_tried_once_more(path, monkeypatch):
    real, answers = Path.replace, iter([PermissionError(1, "no"), None])

    def replace(self: Path, target: Path) -> Path:
        if error := next(answers):
            raise error
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    rewrite(path, adding("b"))

    assert len(entries_of(path)) == 2


def test_what_a_killed_writer_left_is_removed_and_what_is_like_it_is_not(path):
    for name in ("triggers.json.7.1.tmp", "triggers.json.7.x.tmp", "my-triggers.json.7.1.tmp"):
        path.with_name(name).touch()

    rewrite(path, adding("b"))

    assert left_in(path) == ["my-triggers.json.7.1.tmp", "triggers.json.7.x.tmp"]


def test_what_was_left_and_cannot_be_removed_is_in_nobodys_way(path):
    path.with_name("triggers.json.7.1.tmp").mkdir()
    path.with_name("triggers.json.7.2.tmp").touch()

    rewrite(path, adding("b"))

    assert (len(entries_of(path)), left_in(path)) == (2, ["triggers.json.7.1.tmp"])


# Others at the same file


def test_a_lock_that_somebody_has_is_waited_for_as_long_as_there_is_patience(path):
    fresh, pauses = lock_of(path, age=5), []
    with pytest.raises(LockedError, match=r"who has triggers.json.lock. Nothing was changed; try again"):
        rewrite(path, adding("b"))

    def pause() -> None:
        pauses.append(1)
        if len(pauses) == 3:
            fresh.unlink()

    rewrite(path, adding("b"), patience=Patience(tries=5, pause=pause))
    assert (len(pauses), entries_of(path)) == (3, [cron("a"), cron("b")])

    lock_of(path, age=5)
    with pytest.raises(LockedError):
        rewrite(path, adding("c"), patience=Patience(tries=5, pause=lambda: pauses.append(1)))
    assert len(pauses) == 3 + 4


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(lambda lock: lock.mkdir(), "is no lock file", id="folder"),
        pytest.param(lambda lock: lock.symlink_to("nowhere"), "is no lock file", id="link"),
        pytest.param(lambda lock: os.mkfifo(lock), "is no lock file", id="pipe"),
        pytest.param(lambda lock: lock_of(lock.with_suffix(""), age=60), "is 60 s old", id="not ours"),
        pytest.param(lambda lock: lock_of(lock.with_suffix(""), age=5), None, id="fresh"),
    ],
)
def test_a_lock_that_does_not_go_away_by_itself_is_said(path, monkeypatch, make, says):
    make(path.with_name(f"{path.name}.lock"))
    # As in a folder where only its owner may remove a file.
    monkeypatch.setattr(lock, "_removed", lambda *_: False)

    with pytest.raises(LockedError, match="try again") as error:
        rewrite(path, adding("b"))

    told = f" triggers.json.lock {says}: if nobody is at it, remove it by hand." if says else ""
    assert str(error.value).endswith(f"try again.{told}")


@pytest.mark.parametrize("age", [11, 3600, -3600])
def test_a_stale_lock_is_taken_over_and_that_is_said(path, events, age):
    lock_of(path, age=age)

    rewrite(path, adding("b"))

    (said,) = events()
    assert said["event"] == "triggers_lock_stale_taken"
    assert abs(said["ageMs"] - age * 1000) < 1000
    assert left_in(path) == []


@pytest.mark.parametrize(
    "point", ["triggers locked", "triggers read", "triggers written", "triggers replaced"]
)
def test_a_writer_killed_at_any_step_keeps_nobody_waiting_and_leaves_a_whole_file(path, events, point):
    child = os.fork()
    if not child:
        rewrite(
            path, adding("b"), reached=lambda name: name == point and os.kill(os.getpid(), signal.SIGKILL)
        )
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    is_done = point == "triggers replaced"
    assert [one["on"]["id"] for one in entries_of(path)] == ["a", "b"][: 1 + is_done]

    rewrite(path, adding("c"))

    assert entries_of(path)[-1] == cron("c")
    assert left_in(path) == []
    assert [said["event"] for said in events()] == ["triggers_lock_stale_taken"]


def test_an_old_lock_whose_maker_lives_is_not_stale(path, events):
    old = lock_of(path, age=60)
    with old.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockedError):
            rewrite(path, adding("b"))

    assert old.exists()
    assert events() == []


def test_who_judged_a_lock_stale_too_late_does_not_remove_the_fresh_one(path, monkeypatch):
    lock_of(path, age=60)
    real, fresh = fcntl.flock, []

    def another_was_faster(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        fresh.append(lock.held(path))
        fresh[0].__enter__()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", another_was_faster)
    with pytest.raises(LockedError):
        rewrite(path, adding("b"))

    assert left_in(path) == ["triggers.json.lock"]
    fresh[0].__exit__(None, None, None)
    assert left_in(path) == []


def test_who_was_judged_dead_before_it_had_locked_gives_up(path, monkeypatch):
    real = fcntl.flock

    def judged_dead(descriptor: int, operation: int) -> None:
        path.with_name(f"{path.name}.lock").unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", judged_dead)
    with pytest.raises(LockedError):
        rewrite(path, adding("b"))


@pytest.mark.parametrize("stale", [False, True])
def test_of_many_writers_none_overwrites_another(path, stale):
    if stale:
        lock_of(path, age=60)
    patience = Patience(tries=10_000, pause=lambda: time.sleep(0.001))
    threads = [
        threading.Thread(target=rewrite, args=(path, adding(f"t{n}")), kwargs={"patience": patience})
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    ids = [one["on"]["id"] for one in entries_of(path)]
    assert sorted(ids) == sorted(["a", *(f"t{n}" for n in range(12))])
    assert left_in(path) == []


def test_a_lock_that_somebody_took_away_stops_the_writer(path):
    def take_away(point: str) -> None:
        if point == "triggers written":
            path.with_name("triggers.json.lock").unlink(missing_ok=True)

    before = path.read_bytes()
    with pytest.raises(EditedMeanwhileError):
        rewrite(path, adding("b"), reached=take_away)

    assert (path.read_bytes(), left_in(path)) == (before, [])


def test_a_lock_that_cannot_be_removed_is_said(path, monkeypatch, events):
    real = Path.unlink

    def stuck(self: Path, missing_ok: bool = False) -> None:
        if self.name.endswith(".lock"):
            raise PermissionError(1, "no")
        real(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", stuck)
    rewrite(path, adding("b"))

    assert events() == [{"event": "triggers_lock_stuck"}]


def replaced(path: Path, number: int) -> None:
    other = path.with_name("editor")
    written(other, cron(f"e{number}"))
    other.replace(path)


def in_place(path: Path, number: int) -> None:
    written(path, cron(f"e{number}"))


def removed(path: Path, number: int) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("edit", "times", "kept"),
    [
        (replaced, 1, ["e0", "b"]),
        (in_place, 2, ["e1", "b"]),
        (replaced, 3, None),
        (removed, 1, None),
    ],
)
def test_an_editor_that_is_faster_loses_nothing(path, edit, times, kept):
    numbers = itertools.count()

    def between(point: str) -> None:
        if point == "triggers written" and (number := next(numbers)) < times:
            edit(path, number)

    if kept is None:
        with pytest.raises((EditedMeanwhileError, OperatorFileError)):
            rewrite(path, adding("b"), reached=between)
        assert "b" not in (path.read_text() if path.exists() else "")
    else:
        rewrite(path, adding("b"), reached=between)
        assert [one["on"]["id"] for one in entries_of(path)] == kept
    assert left_in(path) == []


def test_half_a_file_is_read_again(path):
    whole, half = path.read_bytes(), path.read_bytes()[:40]
    path.write_bytes(half)

    rewrite(path, adding("b"), patience=Patience(tries=2, pause=lambda: path.write_bytes(whole)))

    assert len(entries_of(path)) == 2


def test_the_file_as_it_is_now_is_read_for_the_gate(path):
    assert writing.document_of(path) == {"triggers": [cron("a")]}
    for content in (b"[" * 100_000, b"\xff", b"NaN"):
        path.write_bytes(content)
        with pytest.raises(OperatorFileError):
            writing.document_of(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(OperatorFileError, match="no regular file"):
        writing.document_of(path)
