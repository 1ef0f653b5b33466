from __future__ import annotations

from pathlib import Path

import pytest

from runs.outcome import InfraFault
from runs.workspace.git import Git
from runs.workspace.head import open_repository
from tests.runs.repositories import Repo

pytest_plugins = ["tests.runs.grounds"]


def test_a_repository_stands_on_its_commit(repo: Repo) -> None:
    found = open_repository(repo.path, git=Git())

    assert found.sha == repo.git("rev-parse", "HEAD")
    assert found.objects == repo.path / ".git/objects"
    assert found.index.exists()


def test_a_repository_without_a_commit_has_no_sha(ground: Path) -> None:
    repo = Repo.make(ground / "new")
    assert open_repository(repo.path, git=Git()).sha is None

    repo.git("commit", "-q", "--allow-empty", "-m", "x")
    repo.git("checkout", "-q", "--orphan", "fresh/start")
    assert open_repository(repo.path, git=Git()).sha is None


def test_a_worktree_of_a_branch_without_a_commit_has_no_sha(repo: Repo) -> None:
    repo.git("worktree", "add", "-q", "--detach", "../side")
    side = Repo(repo.path.parent / "side")
    side.git("checkout", "-q", "--orphan", "fresh")

    assert open_repository(side.path, git=Git()).sha is None


def test_a_detached_head_is_a_commit_like_any_other(repo: Repo) -> None:
    first = repo.git("rev-parse", "HEAD")
    repo.commit({"more": "x"})
    repo.git("checkout", "-q", first)

    assert open_repository(repo.path, git=Git()).sha == first


def test_a_sha256_repository_is_read(ground: Path) -> None:
    repo = Repo.make(ground / "long", "--object-format=sha256")
    sha = repo.commit({"a": "x"})

    found = open_repository(repo.path, git=Git())

    assert (found.sha, len(sha), found.object_format) == (sha, 64, "sha256")


def test_a_worktree_has_its_own_head_and_index_and_the_common_objects(repo: Repo) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(repo.path.parent / "side")
    sha = side.commit({"more": "x"})

    found = open_repository(side.path, git=Git())

    assert found.sha == sha != repo.git("rev-parse", "HEAD")
    assert found.objects == repo.path / ".git/objects"
    assert found.index == repo.path / ".git/worktrees/side/index"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda git: (git / "HEAD").write_text("rubbish\n"), id="HEAD is rubbish"),
        pytest.param(lambda git: (git / "HEAD").unlink(), id="HEAD is gone"),
        pytest.param(lambda git: (git / "refs/heads/main").write_text(""), id="the branch is empty"),
        pytest.param(
            lambda git: (git / "refs/heads/main").write_text("rubbish\n"), id="the branch is rubbish"
        ),
        pytest.param(lambda git: (git / "config").write_text("[core\n"), id="configuration is broken"),
        pytest.param(
            lambda git: (git / "config").write_text(
                "[core]\nrepositoryformatversion = 1\n[extensions]\nx = y\n"
            ),
            id="an extension that this git does not know",
        ),
        pytest.param(
            lambda git: (git / "commondir").write_text("a\nb\n"), id="a place with a line end in its name"
        ),
    ],
)
def test_a_repository_that_git_cannot_read_is_a_fault(repo: Repo, damage) -> None:
    damage(repo.path / ".git")

    with pytest.raises(InfraFault) as fault:
        open_repository(repo.path, git=Git())

    assert str(fault.value.detail).endswith("-failed")
