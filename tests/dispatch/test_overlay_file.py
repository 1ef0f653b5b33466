"""The file of the settings overlay: what is read as what, and edits that are whole, counted and kept."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import stat
import subprocess
import sys

import pytest

from dispatch.operator_files.overlay import EMPTY, Overlay
from dispatch.operator_files.overlay_file import edit, read
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.strict_json import MAX_BYTES
from pidispatch_site.errors import ConfigurationError, OperationalError
from tests.runs.accounts import ORDINARY, as_ordinary_user, needs_root

VALID = '{\n  "later": [1, "é"],\n  "dailyCap": 5\n}\n'


@pytest.fixture
def path(tmp_path):
    # pytest's own folders keep other users out.
    own = [folder for folder in tmp_path.parents if folder.name.startswith(("pytest-", "popen-"))]
    for folder in (tmp_path, *own):
        folder.chmod(0o755)
    return tmp_path / "settings.json"


def unhurried():
    """Not to be waited for: nobody writes."""


def change(path, *unset, **to_set):
    return edit(path, set=to_set, unset=unset)


def listed(path):
    return sorted(item.name for item in path.parent.iterdir())


def test_what_is_there_is_read(path):
    path.write_text(VALID)

    assert read(path) == Overlay(daily_cap=5, unknown=("later",))


def test_a_file_that_is_missing_is_an_empty_overlay(path):
    link = path.with_name("link")
    link.symlink_to(path.with_name("nothing"))

    assert [read(one) for one in (path, link, path.parent / "no" / "folder.json")] == [EMPTY] * 3


def _folder(path):
    path.mkdir()


def _loop(path):
    path.symlink_to(path)


def _pipe(path):
    os.mkfifo(path)


def _device(path):
    path.symlink_to("/dev/zero")


UNREADABLE = {
    "folder": (_folder, "cannot be read: it is no regular file"),
    "loop of links": (_loop, "cannot be read: Too many levels of symbolic links"),
    "pipe without a writer": (_pipe, "cannot be read: it is no regular file"),
    "device": (_device, "cannot be read: it is no regular file"),
    "too large": (lambda path: path.write_bytes(b" " * (MAX_BYTES + 1)), f"has {MAX_BYTES + 1} bytes"),
    "no JSON": (lambda path: path.write_text("dailyCap=5"), "is not JSON"),
    "no object": (lambda path: path.write_text("[]"), "is no object"),
    "a wrong key": (
        lambda path: path.write_text('{"dailyCap": 0}'),
        "dailyCap has a value that is not allowed",
    ),
}


@pytest.mark.parametrize(("make", "says"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_gives_no_overlay_is_refused(path, make, says):
    make(path)

    with pytest.raises(OperatorFileError, match=says) as error:
        read(path, settle=unhurried)

    assert str(error.value).startswith(f"{path}: ")


def test_a_parent_that_is_no_folder_is_refused(path):
    """The path is wrong, and whoever wrote it believes that the caps there hold."""
    path.write_text(VALID)

    with pytest.raises(OperatorFileError, match="Not a directory"):
        read(path / "settings.json")


def test_who_may_not_read_is_not_told_that_nothing_is_set(path):
    path.write_text(VALID)
    path.chmod(0)

    def refusal():
        with pytest.raises(OperatorFileError) as error:
            read(path)
        return str(error.value)

    assert as_ordinary_user(refusal) == f"{path}: cannot be read: Permission denied"


def test_a_file_that_is_being_written_in_place_is_read_once_it_is_whole(path):
    path.write_text("")
    steps = iter([VALID[:5], VALID[:20], VALID])

    assert read(path, settle=lambda: path.write_text(next(steps))).daily_cap == 5
    assert list(steps) == []


def test_a_file_that_never_settles_is_refused_in_the_end(path):
    path.write_text("{")
    counted = iter(range(100))

    with pytest.raises(OperatorFileError):
        read(path, settle=lambda: path.write_text("{" * next(counted)))

    assert next(counted) <= 20


def test_a_first_edit_makes_the_file_its_owners_alone(path):
    assert change(path, dailyCap="7", model="m") == Overlay(daily_cap=7, model="m")

    assert path.read_text() == '{\n  "dailyCap": 7,\n  "model": "m"\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert listed(path) == [".settings.json.lock", "settings.json"]


def test_an_edit_keeps_mode_order_and_what_it_does_not_know(path):
    path.write_text(VALID)
    path.chmod(0o640)

    found = change(path, "weeklyCap", concurrency="3", dailyCap="8")

    assert found == read(path) == Overlay(daily_cap=8, concurrency=3, unknown=("later",))
    assert (
        path.read_text()
        == '{\n  "later": [\n    1,\n    "é"\n  ],\n  "dailyCap": 8,\n  "concurrency": 3\n}\n'
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@needs_root
def test_a_file_of_the_worker_stays_the_workers_when_root_edits_it(path):
    os.chown(path.parent, ORDINARY.uid, ORDINARY.gid)
    change(path, dailyCap="7")
    change(path, dailyCap="8")
    assert (path.stat().st_uid, path.stat().st_gid) == (ORDINARY.uid, ORDINARY.gid)

    os.chown(path, ORDINARY.uid, 0)
    change(path, dailyCap="9")
    assert (path.stat().st_uid, path.stat().st_gid) == (ORDINARY.uid, 0)
    os.chown(path, ORDINARY.uid, ORDINARY.gid)

    assert as_ordinary_user(lambda: change(path, dailyCap="10")) == read(path) == Overlay(daily_cap=10)


@needs_root
def test_a_file_of_somebody_else_is_not_taken_over(path):
    path.write_text(VALID)
    path.parent.chmod(0o777)

    def refusal():
        with pytest.raises(OperationalError) as error:
            change(path, dailyCap="8")
        return str(error.value)

    assert as_ordinary_user(refusal).startswith(
        f"{path} belongs to another user (uid 0). Nothing was changed"
    )
    assert path.read_text() == VALID


@pytest.mark.parametrize("exists", [True, False], ids=["file", "nothing yet"])
def test_an_edit_goes_through_a_link_and_leaves_it(path, tmp_path, exists):
    target = tmp_path / "elsewhere" / "real.json"
    target.parent.mkdir()
    if exists:
        target.write_text(VALID)
    path.symlink_to("elsewhere/real.json")

    change(path, dailyCap="9")

    assert path.readlink().as_posix() == "elsewhere/real.json"
    assert json.loads(target.read_text())["dailyCap"] == 9
    assert not target.is_symlink()


def test_a_reader_has_the_old_file_or_the_new_one(path):
    path.write_text(VALID)
    with path.open("rb") as reader:
        change(path, dailyCap="9")

        assert reader.read() == VALID.encode()
    assert read(path).daily_cap == 9


def test_an_edit_that_changes_nothing_writes_nothing(path):
    change(path, "dailyCap")
    assert not path.exists()

    change(path, dailyCap="5")
    before = path.stat().st_ino
    change(path, "model", dailyCap="5")
    assert path.stat().st_ino == before


BROKEN = '{"dailyCap": true, "softHoldPct": 0, "model": "m"}'


@pytest.mark.parametrize(
    ("content", "unset", "to_set", "becomes"),
    [
        pytest.param(BROKEN, ["dailyCap", "softHoldPct"], {}, {"model": "m"}, id="both out"),
        pytest.param(BROKEN, ["softHoldPct"], {"dailyCap": "2"}, {"dailyCap": 2, "model": "m"}, id="one in"),
        pytest.param('{"dailyCap": true}', [], {"dailyCap": "1"}, {"dailyCap": 1}, id="true is no 1"),
        pytest.param('{"dialyCap": 1e999}', ["dialyCap"], {}, {}, id="unknown and endless"),
    ],
)
def test_an_invalid_file_is_mended_by_its_keys(path, content, unset, to_set, becomes):
    path.write_text(content)

    edit(path, set=to_set, unset=unset)

    assert json.dumps(json.loads(path.read_text())) == json.dumps(becomes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(BROKEN, "softHoldPct has a value", id="another key is wrong"),
        pytest.param("dailyCap=5", "is not JSON", id="no JSON"),
        pytest.param("", "is not JSON", id="nothing"),
        pytest.param("[1]", "is no object", id="no object"),
        pytest.param('{"a": 1, "a": 2}', "twice", id="a key twice"),
        pytest.param('{"other": 1e999}', "edit it by hand", id="cannot be written again"),
    ],
)
def test_what_would_not_be_right_afterwards_is_left_alone(path, content, says):
    path.write_text(content)

    with pytest.raises(OperatorFileError, match=says):
        change(path, dailyCap="6")

    assert path.read_text() == content
    assert listed(path) == [".settings.json.lock", "settings.json"]


def test_one_wrong_change_keeps_the_others_out(path):
    path.write_text(VALID)

    with pytest.raises(ConfigurationError, match="dialyCap"):
        change(path, dailyCap="6", dialyCap="7")

    assert path.read_text() == VALID


def test_a_full_disk_leaves_the_old_file(path):
    path.write_text(VALID)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OperationalError, match=r"cannot be written: File too large. Nothing was changed"):
            change(path, dailyCap="6")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert path.read_text() == VALID
    assert listed(path) == [".settings.json.lock", "settings.json"]


@pytest.mark.parametrize("where", ["no/settings.json", "file/settings.json"])
def test_a_folder_that_is_not_there_is_not_made(path, where):
    path.with_name("file").touch()

    with pytest.raises(OperationalError, match="cannot be written: No"):
        change(path.parent / where, dailyCap="6")


def test_what_a_killed_edit_left_is_cleared_away(path):
    path.write_text(VALID)
    path.with_name(".settings.json.tmp").write_text("half")

    change(path, dailyCap="6")

    assert listed(path) == [".settings.json.lock", "settings.json"]


def test_an_edit_that_hangs_is_not_waited_for_for_ever(path):
    with path.with_name(".settings.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with pytest.raises(OperationalError, match="Another command has been editing"):
            edit(path, set={"dailyCap": "6"}, unset=(), lock_seconds=0.1)

    assert change(path, dailyCap="6").daily_cap == 6


EDITOR = """
import sys
from pathlib import Path
from dispatch.operator_files.overlay_file import edit
path, key = Path(sys.argv[1]), sys.argv[2]
print(flush=True)
sys.stdin.readline()
for number in range(1, 41):
    edit(path, set={key: str(number)}, unset=())
"""


def test_edits_of_several_processes_all_count_and_are_always_whole(path):
    keys = ["dailyCap", "weeklyCap", "monthlyCap", "maxTurns"]
    editors = [
        subprocess.Popen(
            [sys.executable, "-c", EDITOR, str(path), key], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for key in keys
    ]
    try:
        for editor in editors:
            editor.stdout.readline()
        for editor in editors:
            editor.stdin.write(b"\n")
            editor.stdin.flush()
        seen = {read(path, settle=pytest.fail).daily_cap}
        while any(editor.poll() is None for editor in editors):
            seen.add(read(path, settle=pytest.fail).daily_cap)
    finally:
        for editor in editors:
            editor.kill()
            editor.communicate()

    assert [editor.returncode for editor in editors] == [0, 0, 0, 0]
    assert json.loads(path.read_text()) == dict.fromkeys(keys, 40)
    assert len(seen) > 2
