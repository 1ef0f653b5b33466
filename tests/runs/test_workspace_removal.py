from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.workspace.removal import _make_accessible, _remove_inner, remove_tree
from tests.runs.accounts import ORDINARY, OTHER, as_ordinary_user, needs_root

pytest_plugins = ["tests.runs.grounds"]


@pytest.fixture
def home(ground: Path) -> Path:
    """A folder that the ordinary user owns."""
    home = ground / "home"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, ORDINARY.uid, ORDINARY.gid)
    return home


def remove(path: Path, *, ordinary: bool) -> int:
    return as_ordinary_user(lambda: remove_tree(path)) if ordinary else remove_tree(path)


def make(path: Path, build: Callable[[Path], None]) -> Path:
    """Build a tree as the ordinary user, like a job does."""

    def built() -> None:
        path.mkdir()
        build(path)

    as_ordinary_user(built)
    return path


def closed_folders(path: Path) -> None:
    (path / "a/b/c").mkdir(parents=True)
    (path / "a/b/c/file").write_text("x")
    (path / "a/file").write_text("x")
    for folder in ("a/b/c", "a/b", "a", "."):
        (path / folder).chmod(0o000)


def odd_things(path: Path) -> None:
    os.mkfifo(path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path / "socket"))
    (path / "empty").mkdir()
    (path / "\n-rf *").write_text("x")
    (path / ("x" * 255)).mkdir()
    os.link(path / "\n-rf *", path / "twin")
    with os.fdopen(os.open(os.fsencode(path) + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY), "w"):
        pass


def thousands_deep(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


def wide(path: Path) -> None:
    for number in range(60):
        (path / f"folder{number}/x").mkdir(parents=True)
        for name in range(20):
            (path / f"folder{number}/{name}").touch()


def names_that_get_in_the_way(path: Path) -> None:
    (path / "a/a/a/a").mkdir(parents=True)
    (path / "a/a/b").write_text("x")
    (path / "b").mkdir()


@pytest.mark.parametrize("ordinary", [True, pytest.param(False, marks=needs_root)], ids=["owner", "root"])
@pytest.mark.parametrize(
    "build", [closed_folders, odd_things, thousands_deep, wide, names_that_get_in_the_way]
)
def test_whatever_a_job_left_goes(home: Path, build: Callable[[Path], None], *, ordinary: bool) -> None:
    path = make(home / "job", build)

    left = remove(path, ordinary=ordinary)

    assert left == 0
    assert list(home.iterdir()) == []


def test_links_are_removed_and_not_followed(home: Path, ground: Path) -> None:
    kept = ground / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    kept.chmod(0o755)

    def build(path: Path) -> None:
        (path / "folder").symlink_to(kept)
        (path / "file").symlink_to(kept / "file")
        (path / "up").symlink_to("..")
        (path / "inner").mkdir()
        (path / "inner/folder").symlink_to(kept)

    left = remove_tree(make(home / "job", build))

    assert left == 0
    assert (kept / "file").read_text() == "x"
    assert kept.stat().st_mode & 0o777 == 0o755
    assert list(home.iterdir()) == []


def test_a_link_in_the_place_of_the_folder_goes_alone(home: Path, ground: Path) -> None:
    (ground / "kept").mkdir()
    (ground / "kept/file").write_text("x")
    (ground / "job").symlink_to(ground / "kept")

    assert remove_tree(ground / "job") == 0

    assert not (ground / "job").is_symlink()
    assert (ground / "kept/file").exists()


def test_a_folder_swapped_for_a_link_after_it_was_listed_leads_nowhere(ground: Path) -> None:
    # The steps on one listed entry, met with a link: the listing's word that it is a folder is out of date.
    kept = ground / "kept"
    kept.mkdir(mode=0o755)
    (kept / "file").write_text("x")
    (ground / "job").mkdir()
    (ground / "job/swapped").symlink_to(kept)
    top = os.open(ground / "job", os.O_RDONLY)

    _make_accessible("swapped", top)
    with pytest.raises(OSError, match="Not a directory"):
        _remove_inner("swapped", top)
    os.close(top)

    assert (kept / "file").exists()
    assert kept.stat().st_mode & 0o777 == 0o755


def test_what_is_not_there_is_gone(ground: Path) -> None:
    assert remove_tree(ground / "nothing") == 0
    assert remove_tree(ground / "nothing/deeper") == 0


@needs_root
def test_root_removes_what_belongs_to_others(home: Path) -> None:
    path = make(home / "job", closed_folders)
    (path / "theirs").mkdir()
    (path / "theirs/file").write_text("x")
    os.chown(path / "theirs", OTHER.uid, OTHER.gid)

    assert remove_tree(path) == 0


@needs_root
def test_an_owner_removes_all_but_what_is_not_theirs_and_says_how_many(home: Path) -> None:
    path = make(home / "job", wide)
    for name in ("one", "two"):
        (path / name).mkdir(mode=0o755)
        (path / name / "file").write_text("x")
    (path / "mine").write_text("x")

    left = remove(path, ordinary=True)

    assert left == 2
    assert sorted(entry.name for entry in path.iterdir()) == ["one", "two"]


@needs_root
def test_a_parent_that_may_not_be_written_is_no_exception(ground: Path) -> None:
    (ground / "job").mkdir()

    assert remove(ground / "job", ordinary=True) == 1
