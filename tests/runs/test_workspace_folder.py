from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch_site.errors import ConfigurationError, OperationalError
from runs.outcome import InfraFault, Reason, Refusal
from runs.workspace.folder import CheckedFolder, WorkFolder, check_folder, look, require_clean
from runs.workspace.git import Git
from runs.workspace.jobuser import Account
from tests.runs.accounts import ORDINARY, as_ordinary_user, current, needs_root, ordinary
from tests.runs.repositories import Repo

pytest_plugins = ["tests.runs.grounds"]


@pytest.fixture
def own(repo: Repo) -> Repo:
    """A repository of somebody a job can run as."""
    if os.geteuid() == 0:
        repo.give_to(ORDINARY.uid, ORDINARY.gid)
    return repo


def check(folder: Path | str, *, base: Path = Path("/"), git: Git | None = None) -> CheckedFolder:
    return check_folder(str(folder), account=current(), git=git or Git(), base=base)


# Before it is enqueued


def test_a_working_tree_is_accepted_with_its_commit(own: Repo) -> None:
    checked = check(own.path)

    assert checked.path == own.path
    assert checked.sha == own.git("rev-parse", "HEAD")
    assert checked.notes == ()


@pytest.mark.parametrize("text", ["repo", "./repo/", "repo/../repo//", "../{ground}/repo"])
def test_a_relative_folder_is_taken_from_where_the_person_stands(own: Repo, text: str) -> None:
    base = own.path.parent

    assert check(text.format(ground=base.name), base=base).path == own.path


def test_a_link_is_resolved_and_the_person_is_told(own: Repo) -> None:
    link = own.path.parent / "link"
    link.symlink_to(own.path)

    checked = check(link)

    assert checked.path == own.path
    assert checked.notes == (f"The folder was given through a symbolic link; the job works on {own.path}.",)


def test_a_worktree_is_accepted_with_a_warning(own: Repo) -> None:
    own.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(own.path.parent / "side")
    if os.geteuid() == 0:
        own.give_to(ORDINARY.uid, ORDINARY.gid)
        side.give_to(ORDINARY.uid, ORDINARY.gid)

    checked = check(side.path)

    assert checked.sha == own.git("rev-parse", "HEAD")
    assert "does not work inside the container" in checked.notes[0]


def test_a_repository_without_a_commit_is_accepted(ground: Path) -> None:
    repo = Repo.make(ground / "new")
    if os.geteuid() == 0:
        repo.give_to(ORDINARY.uid, ORDINARY.gid)

    assert check(repo.path).sha is None


def a_file(repo: Repo) -> Path:
    return repo.path / "README.md"


def a_bare_repository(repo: Repo) -> Path:
    return Repo.make(repo.path.parent / "bare", "--bare").path


def a_folder_inside(repo: Repo) -> Path:
    inner = repo.path / "inner"
    inner.mkdir()
    return inner


def a_dangling_link(repo: Repo) -> Path:
    link = repo.path.parent / "dangling"
    link.symlink_to("nowhere")
    return link


def a_link_to_a_folder_without_git(repo: Repo) -> Path:
    link = repo.path.parent / "outside"
    link.symlink_to("/")
    return link


def a_pipe_for_git(repo: Repo) -> Path:
    folder = repo.path.parent / "pipe"
    folder.mkdir()
    os.mkfifo(folder / ".git")
    return folder


def an_empty_git(repo: Repo) -> Path:
    folder = repo.path / "hollow"
    (folder / ".git").mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(folder, ORDINARY.uid, ORDINARY.gid)
    return folder


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda repo: repo.path / "nothing", "does not exist", id="missing"),
        pytest.param(lambda repo: a_file(repo) / "x", "leads through a file", id="below a file"),
        pytest.param(a_file, "is a file", id="a file"),
        pytest.param(
            lambda repo: repo.path.parent, "is not a git repository: run `git init`", id="no repository"
        ),
        pytest.param(a_bare_repository, "is a bare repository", id="bare"),
        pytest.param(a_folder_inside, "a folder inside the repository {repo}", id="inside a repository"),
        pytest.param(a_dangling_link, "does not exist", id="dangling link"),
        pytest.param(a_link_to_a_folder_without_git, "/ is not a git repository", id="link to outside"),
        pytest.param(a_pipe_for_git, "is not a git repository", id=".git is a pipe"),
        pytest.param(an_empty_git, "git cannot read the repository", id=".git is empty"),
        pytest.param(lambda repo: "", "The folder is empty", id="nothing named"),
        pytest.param(lambda repo: "a\0b", "not valid UTF-8", id="NUL"),
        pytest.param(lambda repo: "/srv/\udcff", "not valid UTF-8", id="not UTF-8"),
    ],
)
def test_what_no_job_can_work_on_is_refused_with_the_reason(own: Repo, make: Callable, said: str) -> None:
    folder = make(own)

    with pytest.raises(ConfigurationError) as refused:
        check(folder)

    assert said.format(repo=own.path) in str(refused.value)
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize("closed", ["repo", ".", "repo/.git"])
def test_what_this_account_cannot_read_is_refused(own: Repo, closed: str) -> None:
    ground = own.path.parent
    (ground / closed).chmod(0o000)

    def ask() -> None:
        check_folder(str(own.path), account=ordinary(), git=Git(), base=Path("/"))

    with pytest.raises(ConfigurationError, match=r"cannot (be )?read") as refused:
        as_ordinary_user(ask)
    (ground / closed).chmod(0o755)

    assert str(own.path) in str(refused.value)


def test_links_in_a_circle_are_a_fault_of_the_disk(ground: Path) -> None:
    (ground / "a").symlink_to("b")
    (ground / "b").symlink_to("a")

    with pytest.raises(OperationalError, match="symbolic links"):
        check(ground / "a")


def test_without_git_the_person_is_told_to_install_it(own: Repo) -> None:
    with pytest.raises(OperationalError, match="git is not installed"):
        check(own.path, git=Git(program="no-such-git"))


@needs_root
def test_root_is_told_at_once_that_its_own_folder_cannot_be_worked_on(repo: Repo) -> None:
    with pytest.raises(ConfigurationError, match=r"chown -R 1001:1001"):
        check(repo.path)


@needs_root
def test_root_looks_at_a_folder_with_its_owners_eyes(own: Repo) -> None:
    secret = own.path.parent / "secret"
    Repo.make(secret).commit({"a": "x"})
    secret.chmod(0o700)
    (own.path / ".git").rename(own.path.parent / "was")
    (own.path / ".git").write_text(f"gitdir: {secret}/.git\n")

    with pytest.raises(ConfigurationError, match="git cannot read"):
        check(own.path)


# Uncommitted changes


def test_a_clean_tree_passes(own: Repo) -> None:
    require_clean(check(own.path), account=current(), git=Git())


def test_a_dirty_tree_is_refused_with_counts_and_no_names(own: Repo) -> None:
    own.write("README.md", "secret-content")
    own.write("secret-name", "x")

    with pytest.raises(ConfigurationError) as refused:
        require_clean(check(own.path), account=current(), git=Git())

    assert "1 changed, 1 untracked" in str(refused.value)
    assert "--force" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_more_changes_than_can_be_listed_are_dirty_too(own: Repo) -> None:
    for number in range(100):
        own.write(f"{number:03}", "x")

    with pytest.raises(ConfigurationError, match="more than can be listed"):
        require_clean(check(own.path), account=current(), git=Git(output_limit_bytes=400))


def test_when_git_cannot_tell_nothing_is_assumed(own: Repo) -> None:
    checked = check(own.path)
    own.write(".git/index", "rubbish")

    with pytest.raises(OperationalError, match="could not tell"):
        require_clean(checked, account=current(), git=Git())


@needs_root
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_root_counts_changes_also_where_the_owner_cannot_enter(own: Repo, mode: int) -> None:
    own.path.parent.chmod(mode)
    checked = check(own.path)
    require_clean(checked, account=current(), git=Git())
    own.write("new", "x")

    with pytest.raises(ConfigurationError, match="0 changed, 1 untracked"):
        require_clean(checked, account=current(), git=Git())


# When the job starts


def test_the_folder_is_found_again_with_its_owner(repo: Repo) -> None:
    status = repo.path.stat()

    assert look(f"{repo.path}/") == WorkFolder(path=repo.path, owner=Account(status.st_uid, status.st_gid))


@pytest.mark.parametrize(
    ("make", "token"),
    [
        pytest.param(lambda repo: repo.path / "nothing", "folder-missing", id="missing"),
        pytest.param(a_file, "not-a-folder", id="a file"),
        pytest.param(lambda repo: a_file(repo) / "x", "folder-missing", id="below a file"),
        pytest.param(a_folder_inside, "not-a-working-tree", id="no repository"),
        pytest.param(a_dangling_link, "folder-missing", id="dangling link"),
        pytest.param(a_pipe_for_git, "not-a-working-tree", id=".git is a pipe"),
        pytest.param(lambda repo: "repo", "path-unusable", id="not absolute"),
        pytest.param(lambda repo: "/srv/a\0b", "path-unusable", id="NUL"),
        pytest.param(lambda repo: "/srv/\udcff", "path-unusable", id="not UTF-8"),
        pytest.param(lambda repo: "", "path-unusable", id="empty"),
    ],
)
def test_a_folder_that_cannot_be_worked_on_is_refused_by_a_token_that_says_why(
    repo: Repo, make: Callable, token: str
) -> None:
    folder = str(make(repo))

    assert look(folder) == Refusal(Reason.CONFIG_REFUSED, token)


@pytest.mark.parametrize("place", ["the folder itself", "a folder above it"])
def test_a_link_put_in_the_place_of_a_checked_folder_is_refused(repo: Repo, place: str) -> None:
    link = repo.path.parent / "link"
    link.symlink_to(repo.path if place == "the folder itself" else repo.path.parent)
    folder = link if place == "the folder itself" else link / "repo"

    assert look(str(folder)) == Refusal(Reason.CONFIG_REFUSED, "is-a-link")


def test_a_disk_that_does_not_say_is_a_fault_that_names_nothing(repo: Repo) -> None:
    repo.path.parent.chmod(0o000)

    def fault() -> tuple[object, str]:
        with pytest.raises(InfraFault) as raised:
            look(str(repo.path))
        return raised.value.reason, str(raised.value)

    said = as_ordinary_user(fault)
    repo.path.parent.chmod(0o755)

    assert said == (None, "folder-unreadable")
