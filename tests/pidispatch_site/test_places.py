from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pidispatch_site import places
from pidispatch_site.errors import OperationalError


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_naming_places_makes_nothing(tmp_path):
    state = places.StateDirectory(tmp_path / "state")

    names = [state.worker_lock, state.host_id_file, state.db, state.secret_key, state.valkey_dir]

    assert [path.name for path in names] == ["worker.lock", "host-id", "db.sqlite3", "secret_key", "valkey"]
    assert not state.path.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_a_made_directory_is_its_owners_alone_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        places.StateDirectory(tmp_path / "state").made()
    finally:
        os.umask(before)

    assert mode(tmp_path / "state") & 0o077 == 0


def test_an_empty_open_directory_is_tightened(tmp_path):
    path = tmp_path / "state"
    path.mkdir(mode=0o755)

    places.make_private(path)

    assert mode(path) == 0o700


def test_an_open_directory_with_files_is_refused_and_left_alone(tmp_path):
    """`PI_STATE_DIR=/tmp` by mistake must not lock everybody out of /tmp."""
    path = tmp_path / "shared"
    path.mkdir(mode=0o755)
    path.chmod(0o755)
    (path / "somebody's").touch()

    with pytest.raises(OperationalError, match="chmod 700"):
        places.make_private(path)
    assert mode(path) == 0o755


def test_a_file_in_the_way_is_said(tmp_path):
    (tmp_path / "state").touch()

    with pytest.raises(OperationalError, match=f"{tmp_path}/state cannot be made private"):
        places.make_private(tmp_path / "state")


def test_a_file_is_made_once_private_and_whole(tmp_path):
    path = tmp_path / "key"
    answers = iter(["first", "second"])

    texts = [places.made_once(path, lambda: next(answers)) for _ in range(2)]

    assert texts == ["first", "first"]
    assert mode(path) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["key"]


def test_all_who_ask_at_once_get_the_text_of_one(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        texts = set(pool.map(lambda n: places.made_once(tmp_path / "key", lambda: str(n)), range(64)))

    assert len(texts) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["key"]


def test_a_failing_maker_leaves_nothing_behind(tmp_path):
    def fail():
        raise RuntimeError("no randomness")

    with pytest.raises(RuntimeError):
        places.made_once(tmp_path / "key", fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("obstacle", ["directory", "no text", "no parent"])
def test_what_cannot_be_kept_is_said(tmp_path, obstacle):
    path = tmp_path / "deep" / "key"
    if obstacle != "no parent":
        path.parent.mkdir()
    if obstacle == "directory":
        path.mkdir()
    if obstacle == "no text":
        path.write_bytes(b"\xff")

    with pytest.raises(OperationalError, match="cannot be kept"):
        places.made_once(path, lambda: "x")


def test_a_file_is_made_private_whatever_the_mask_and_one_that_is_there_is_left_alone(tmp_path):
    before = os.umask(0)
    try:
        made = places.private_file(tmp_path / "new")
    finally:
        os.umask(before)
    (tmp_path / "old").write_text("x")
    (tmp_path / "old").chmod(0o640)

    places.private_file(tmp_path / "old")

    assert made.stat().st_mode & 0o777 == 0o600
    assert ((tmp_path / "old").stat().st_mode & 0o777, (tmp_path / "old").read_text()) == (0o640, "x")


def test_a_file_that_is_there_keeps_the_locks_that_this_process_has_on_it(tmp_path):
    """Closing any descriptor of a file drops the process's POSIX locks, which SQLite relies on."""
    path = tmp_path / "locked"
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)

        places.private_file(path)

        other = subprocess.run(
            [
                sys.executable,
                "-c",
                "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)",
                str(path),
            ],
            capture_output=True,
        )
    assert other.returncode != 0
