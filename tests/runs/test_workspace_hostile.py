"""E 9.4 rows 29 and 34: whatever a repository brings along, nothing of it runs on the host.

Each trap is first shown to work: plain git falls for it. Then the folder is checked, its changes are counted
and a job is prepared, and the canary must not appear.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch_site.errors import PidispatchError
from runs.outcome import InfraFault
from runs.workspace.changes import count_changes
from runs.workspace.folder import check_folder, require_clean
from runs.workspace.git import Git
from runs.workspace.local import LocalJob, Prepared, cleanup, prepare
from tests.runs.accounts import ORDINARY, current
from tests.runs.repositories import Repo

pytest_plugins = ["tests.runs.grounds"]

STATUS = ("status", "--porcelain")


@pytest.fixture
def canary(ground: Path) -> Path:
    ground.chmod(0o777)
    return ground / "canary"


def trap(canary: Path, *, place: Path | None = None) -> str:
    """A program that leaves the canary and passes its input through, like a filter."""
    program = place or canary.parent / "trap"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho >> '{canary}'\ncat\n")
    program.chmod(0o755)
    return str(program)


def hook(repo: Repo, canary: Path) -> tuple[str, ...]:
    trap(canary, place=repo.path / ".git/hooks/post-index-change")
    return STATUS


def hooks_path(repo: Repo, canary: Path) -> tuple[str, ...]:
    trap(canary, place=repo.path / "hooks/post-index-change")
    repo.config("core.hooksPath", "hooks")
    return STATUS


def fsmonitor(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.config("core.fsmonitor", trap(canary))
    return STATUS


def fsmonitor_by_include(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write("settings", f"[core]\nfsmonitor = {trap(canary)}\n")
    repo.config("include.path", "../settings")
    return STATUS


def fsmonitor_by_conditional_include(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write("settings", f"[core]\nfsmonitor = {trap(canary)}\n")
    repo.config("includeIf.gitdir:/**.path", "../settings")
    return STATUS


def fsmonitor_by_worktree_settings(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.config("core.repositoryformatversion", "1")
    repo.config("extensions.worktreeConfig", "true")
    repo.write(".git/config.worktree", f"[core]\nfsmonitor = {trap(canary)}\n")
    return STATUS


def clean_filter(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write(".gitattributes", "* filter=evil\n")
    repo.config("filter.evil.clean", trap(canary))
    return STATUS


def required_clean_filter_in_info(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write(".git/info/attributes", "* filter=evil\n")
    repo.config("filter.evil.clean", trap(canary))
    repo.config("filter.evil.required", "true")
    return STATUS


def clean_filter_by_attributes_file(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write("elsewhere", "* filter=evil\n")
    repo.config("core.attributesFile", str(repo.path / "elsewhere"))
    repo.config("filter.evil.clean", trap(canary))
    return STATUS


def filter_process(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write(".gitattributes", "* filter=evil\n")
    repo.config("filter.evil.process", f"{trap(canary)} </dev/null")
    return STATUS


def smudge_filter(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write(".gitattributes", "* filter=evil\n")
    repo.config("filter.evil.smudge", trap(canary))
    return ("checkout", "-f", "HEAD", "--", "README.md")


def external_diff(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.config("diff.external", trap(canary))
    repo.write("README.md", "changed\n")
    return ("diff",)


def text_conversion(repo: Repo, canary: Path) -> tuple[str, ...]:
    repo.write(".gitattributes", "* diff=evil\n")
    repo.config("diff.evil.textconv", trap(canary))
    repo.write("README.md", "changed\n")
    return ("diff",)


def hostile_submodule(repo: Repo, canary: Path, key: str) -> tuple[str, ...]:
    origin = Repo.make(canary.parent / "origin")
    origin.commit({"s": "x", ".gitattributes": "* filter=evil\n"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin.path), "sub")
    repo.git("config", "-f", ".gitmodules", "submodule.sub.ignore", "none")
    repo.commit()
    sub = Repo(repo.path / "sub")
    sub.config(key, trap(canary))
    os.utime(sub.path / "s", (1, 1))
    return STATUS


def fsmonitor_in_a_submodule(repo: Repo, canary: Path) -> tuple[str, ...]:
    return hostile_submodule(repo, canary, "core.fsmonitor")


def filter_in_a_submodule(repo: Repo, canary: Path) -> tuple[str, ...]:
    return hostile_submodule(repo, canary, "filter.evil.clean")


def git_file_to_hostile_settings(repo: Repo, canary: Path) -> tuple[str, ...]:
    fsmonitor(repo, canary)
    (repo.path / ".git").rename(canary.parent / "moved")
    repo.write(".git", f"gitdir: {canary.parent}/moved\n")
    return STATUS


def missing_object(repo: Repo, canary: Path, url: str, **settings: str) -> tuple[str, ...]:
    """A partial clone that lacks the persona: reading it makes git fetch."""
    blob = repo.git("rev-parse", "HEAD:.pi/APPEND_SYSTEM.md")
    (repo.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    repo.config("core.repositoryformatversion", "1")
    repo.config("extensions.partialClone", "origin")
    repo.config("remote.origin.promisor", "true")
    repo.config("remote.origin.url", url)
    repo.config("protocol.allow", "always")
    for key, value in settings.items():
        repo.config(key.replace("_", "."), value)
    return ("cat-file", "blob", blob)


def lazy_fetch_by_upload_pack(repo: Repo, canary: Path) -> tuple[str, ...]:
    program = f"{trap(canary)} </dev/null; :"
    return missing_object(repo, canary, str(repo.path), remote_origin_uploadpack=program)


def lazy_fetch_by_ssh(repo: Repo, canary: Path) -> tuple[str, ...]:
    program = f"{trap(canary)} </dev/null; :"
    return missing_object(repo, canary, "ssh://example.org/x", core_sshCommand=program)


def lazy_fetch_by_ext(repo: Repo, canary: Path) -> tuple[str, ...]:
    trap(canary)
    return missing_object(repo, canary, f"ext::sh -c {canary.parent}/trap% </dev/null")


TRAPS: list[Callable[[Repo, Path], tuple[str, ...]]] = [
    hook,
    hooks_path,
    fsmonitor,
    fsmonitor_by_include,
    fsmonitor_by_conditional_include,
    fsmonitor_by_worktree_settings,
    clean_filter,
    required_clean_filter_in_info,
    clean_filter_by_attributes_file,
    filter_process,
    smudge_filter,
    external_diff,
    text_conversion,
    fsmonitor_in_a_submodule,
    filter_in_a_submodule,
    git_file_to_hostile_settings,
    lazy_fetch_by_upload_pack,
    lazy_fetch_by_ssh,
    lazy_fetch_by_ext,
]


def touch(repo: Repo) -> None:
    """Make git compare contents: the index no longer vouches for any file."""
    for path in repo.path.rglob("*"):
        if path.is_file() and ".git" not in path.relative_to(repo.path).parts:
            os.utime(path, (3, 3))


def handle(repo: Repo, jobs_dir: Path) -> Prepared | None:
    """All that we ever do with a folder; what a broken repository is answered with does not matter here."""
    if os.geteuid() == 0:
        for path in repo.path.parent.iterdir():
            Repo(path).give_to(ORDINARY.uid, ORDINARY.gid)
    with contextlib.suppress(PidispatchError, InfraFault):
        checked = check_folder(str(repo.path), account=current(), git=Git(), base=Path("/"))
        require_clean(checked, account=current(), git=Git())
    # Also as this process itself, which is how a worker that is not root looks.
    with contextlib.suppress(InfraFault):
        count_changes(repo.path, git=Git())
    with contextlib.suppress(InfraFault):
        made = prepare(
            LocalJob(folder=str(repo.path), task="x"),
            jobs_dir=jobs_dir,
            boot="a-b",
            account=current(),
            git=Git(),
        )
        return made if isinstance(made, Prepared) else None
    return None


@pytest.mark.parametrize("lay", TRAPS, ids=lambda lay: lay.__name__)
def test_nothing_of_a_hostile_repository_runs(
    lay: Callable[[Repo, Path], tuple[str, ...]], repo: Repo, canary: Path, tmp_path: Path
) -> None:
    repo.commit({".pi/APPEND_SYSTEM.md": "persona"})
    bait = lay(repo, canary)
    touch(repo)
    repo.git(*bait, check=False)
    assert canary.exists(), "the trap does not work, so the test would prove nothing"
    canary.unlink()
    touch(repo)

    made = handle(repo, tmp_path / "jobs")

    assert not canary.exists()
    if made is not None:
        assert (made.job_dir / "pi/APPEND_SYSTEM.md").read_bytes() == b"persona"
        cleanup(made)
    assert made is not None or lay.__name__.startswith("lazy_fetch")


def test_settings_that_change_while_git_looks_run_nothing(repo: Repo, canary: Path) -> None:
    # A job that still runs can rewrite the settings after they were read and before the status reads files.
    repo.write(".gitattributes", "* filter=evil\n")
    settings = f'git config --file "{repo.path}/.git/config" filter.evil.clean "{trap(canary)}"'
    program = canary.parent / "git"
    program.write_text(f'#!/bin/sh\ncase "$*" in *status*) {settings};; esac\nexec git "$@"\n')
    program.chmod(0o755)
    touch(repo)

    count_changes(repo.path, git=Git(program=str(program)))

    assert "evil" in (repo.path / ".git/config").read_text()
    assert not canary.exists()
    repo.git(*STATUS)
    assert canary.exists()


def test_another_work_tree_named_by_the_settings_is_not_looked_at(repo: Repo, ground: Path) -> None:
    other = ground / "other"
    other.mkdir()
    (other / "file").write_text("x")
    repo.config("core.worktree", str(other))

    assert not count_changes(repo.path, git=Git())
