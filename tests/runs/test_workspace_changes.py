from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.outcome import InfraFault
from runs.workspace.changes import Changes, count_changes
from runs.workspace.git import Git
from runs.workspace.jobuser import Account
from tests.runs.accounts import ORDINARY, OTHER, needs_root
from tests.runs.repositories import Repo

pytest_plugins = ["tests.runs.grounds"]

CLEAN = Changes()


def count(repo: Repo, *, account: Account | None = None) -> Changes:
    return count_changes(repo.path, git=Git(account=account))


def delete(repo: Repo) -> None:
    (repo.path / "README.md").unlink()


def stage(repo: Repo) -> None:
    repo.write("new", "x")
    repo.git("add", "new")


def rename(repo: Repo) -> None:
    repo.git("mv", "README.md", "OTHER.md")


def conflict(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"README.md": "side\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"README.md": "main\n"})
    repo.git("merge", "side", check=False)


def many_untracked(repo: Repo) -> None:
    for number in range(30):
        repo.write(f"folder/{number}", "x")
    repo.write("b\nname\twith blanks", "x")


def executable(repo: Repo) -> None:
    (repo.path / "README.md").chmod(0o755)


def same_size_same_time(repo: Repo) -> None:
    file = repo.path / "README.md"
    status = file.stat()
    file.write_text("jello\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("do", "expected"),
    [
        pytest.param(lambda repo: None, CLEAN, id="nothing"),
        pytest.param(lambda repo: os.utime(repo.path / "README.md", (1, 1)), CLEAN, id="only touched"),
        pytest.param(lambda repo: repo.write("README.md", "x"), Changes(tracked=1), id="modified"),
        pytest.param(same_size_same_time, Changes(tracked=1), id="modified within the same instant"),
        pytest.param(executable, Changes(tracked=1), id="made executable"),
        pytest.param(delete, Changes(tracked=1), id="deleted"),
        pytest.param(stage, Changes(tracked=1), id="staged"),
        pytest.param(rename, Changes(tracked=2), id="renamed, both names"),
        pytest.param(conflict, Changes(tracked=1), id="in the middle of a merge"),
        pytest.param(many_untracked, Changes(untracked=2), id="untracked, a folder is one"),
    ],
)
def test_what_is_not_committed_is_counted(repo: Repo, do: Callable[[Repo], None], expected: Changes) -> None:
    do(repo)

    changes = count(repo)

    assert changes == expected
    assert bool(changes) == (expected != CLEAN)


def test_ignored_files_do_not_count(repo: Repo) -> None:
    repo.commit({".gitignore": "*.log\n"})
    repo.write(".git/info/exclude", "*.tmp\n")
    repo.write("a.log", "x")
    repo.write("a.tmp", "x")

    assert count(repo) == CLEAN


def test_before_the_first_commit_everything_counts(ground: Path) -> None:
    repo = Repo.make(ground / "new")
    assert count(repo) == CLEAN

    stage(repo)
    repo.write("other", "x")

    assert count(repo) == Changes(tracked=1, untracked=1)


def test_a_worktree_counts_for_itself(repo: Repo) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", "../side")
    repo.write("README.md", "x")
    side = Repo(repo.path.parent / "side")
    assert count(side) == CLEAN

    side.write("new", "x")

    assert count(side) == Changes(untracked=1)


def test_sha256_and_a_split_index_are_understood(ground: Path) -> None:
    repo = Repo.make(ground / "long", "--object-format=sha256")
    repo.commit({"a": "x", "b": "y"})
    repo.git("update-index", "--split-index")
    repo.write("a", "z")

    assert count(repo) == Changes(tracked=1)


def test_borrowed_objects_are_found(repo: Repo) -> None:
    repo.git("clone", "-q", "-s", ".", "../borrower")

    assert count(Repo(repo.path.parent / "borrower")) == CLEAN


@pytest.mark.parametrize("where", ["configuration", "attributes"])
def test_converted_line_ends_are_no_change(repo: Repo, where: str) -> None:
    repo.commit(
        {"a.txt": "one\ntwo\n"} | ({".gitattributes": "* eol=crlf\n"} if where == "attributes" else {})
    )
    if where == "configuration":
        repo.config("core.autocrlf", "true")
    (repo.path / "a.txt").unlink()
    repo.git("checkout", "-q", "a.txt")
    assert (repo.path / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    os.utime(repo.path / "a.txt", (1, 1))

    assert count(repo) == CLEAN


def test_a_disk_without_modes_is_believed(repo: Repo) -> None:
    executable(repo)
    repo.config("core.fileMode", "false")

    assert count(repo) == CLEAN


def test_the_index_and_the_folder_stay_as_they_are(repo: Repo) -> None:
    os.utime(repo.path / "README.md", (1, 1))
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in repo.path.rglob("*") if path.is_file()
    }

    count(repo)

    after = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in repo.path.rglob("*") if path.is_file()
    }
    assert after == before


def test_too_many_to_list_is_dirty(repo: Repo) -> None:
    for number in range(200):
        repo.write(f"{number:04}", "x")

    changes = count_changes(repo.path, git=Git(output_limit_bytes=500))

    assert changes
    assert not changes.complete


def test_what_git_cannot_read_is_a_fault(repo: Repo) -> None:
    repo.write(".git/index", "rubbish")

    with pytest.raises(InfraFault, match="git-status-failed"):
        count(repo)


# Submodules


@pytest.fixture
def parent(repo: Repo, ground: Path) -> Repo:
    """A repository with the submodule `sub`, which has the submodule `deep`."""
    deep = Repo.make(ground / "origin-deep")
    deep.commit({"d": "x"})
    sub = Repo.make(ground / "origin-sub")
    sub.commit({"s": "x"})
    for place, origin, name in ((sub, deep, "deep"), (repo, sub, "sub")):
        place.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin.path), name)
        place.commit()
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
    return repo


def test_changes_in_submodules_count(parent: Repo) -> None:
    assert count(parent) == CLEAN

    parent.write("sub/s", "changed")
    parent.write("sub/deep/new", "x")

    assert count(parent) == Changes(tracked=1, untracked=1)


def test_another_commit_in_a_submodule_counts(parent: Repo) -> None:
    Repo(parent.path / "sub").commit({"s": "changed"})

    assert count(parent) == Changes(tracked=1)


def test_a_submodule_that_is_not_checked_out_is_nothing(parent: Repo) -> None:
    parent.git("submodule", "--quiet", "deinit", "--all")

    assert count(parent) == CLEAN


@pytest.mark.parametrize("place", ["../elsewhere", "/tmp", "link", ".git", "a//b", "."])
def test_what_is_no_submodule_of_the_folder_is_not_entered(repo: Repo, place: str) -> None:
    elsewhere = Repo.make(repo.path.parent / "elsewhere")
    elsewhere.write("untracked", "x")
    repo.write(".gitmodules", f'[submodule "x"]\npath = {place}\n')
    (repo.path / "link").symlink_to(elsewhere.path)
    repo.commit()

    assert count(repo) == CLEAN


def test_a_tree_of_submodules_is_followed_five_levels_down(repo: Repo) -> None:
    levels = 8
    place = repo.path
    for _ in range(levels):
        (place / ".gitmodules").write_text('[submodule "m"]\npath = m\n')
        place = place / "m"
        place.mkdir()
        (place / ".git").write_text(f"gitdir: {repo.path}/.git\n")

    # Each level misses README.md and shows `.gitmodules` and `m/`; the top has its README.md.
    assert count(repo) == Changes(tracked=5, untracked=12)


# Other accounts


@needs_root
def test_it_is_counted_as_the_owner(repo: Repo) -> None:
    repo.write("README.md", "x")
    repo.give_to(ORDINARY.uid, ORDINARY.gid)

    assert count(repo, account=ORDINARY) == Changes(tracked=1)


@needs_root
def test_somebody_who_may_not_read_the_repository_cannot_tell(repo: Repo) -> None:
    (repo.path / ".git").chmod(0o700)

    with pytest.raises(InfraFault):
        count(repo, account=OTHER)
