"""Counts uncommitted changes of a folder without running anything it asks for (E 3.2).

`git status` runs a repository's clean filters, its fsmonitor and git in its submodules, each from a
configuration that the folder's content can bring along and change at any moment. So status never sees that
configuration: it works in a git directory of ours, made for one call, that borrows the index and the objects.
A file that only its filter would call unchanged counts as changed: the person can say `--force`.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from runs.outcome import InfraFault
from runs.workspace.git import Git, GitOutputTooLargeError
from runs.workspace.head import Repository, open_repository

# What a repository may say about its file system and line ends; it decides comparisons and starts nothing.
_HARMLESS = (
    "filemode",
    "symlinks",
    "ignorecase",
    "precomposeunicode",
    "autocrlf",
    "eol",
    "trustctime",
    "checkstat",
)
_HARMLESS_VALUE = re.compile(rb"[A-Za-z0-9]{0,16}", re.ASCII)

_STATUS_LIMIT = timedelta(seconds=60)
_SUBMODULES_MAX = 100
_SUBMODULE_DEPTH_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """How many entries differ from the commit.

    `tracked` are staged, modified, deleted or unmerged; of `untracked` ones a whole folder counts as one.

    `complete` is False when there were too many to list; the numbers are then a lower bound.
    """

    tracked: int = 0
    untracked: int = 0
    complete: bool = True

    def __bool__(self) -> bool:
        """Whether the tree is dirty."""
        return bool(self.tracked or self.untracked or not self.complete)

    def __add__(self, other: Changes) -> Changes:
        """Sum the counts of two trees."""
        return Changes(
            tracked=self.tracked + other.tracked,
            untracked=self.untracked + other.untracked,
            complete=self.complete and other.complete,
        )


def count_changes(folder: Path, *, git: Git) -> Changes:
    """Count what is not committed in `folder` and in its checked-out submodules.

    Ignored files do not count; the person's own global ignore file is not read. Raises `InfraFault` when git
    cannot tell. Writes nothing, not even the index.
    """
    budget = _Budget(left=_SUBMODULES_MAX)
    return _count(folder, git=git.within(_STATUS_LIMIT), budget=budget, depth=0)


@dataclass(slots=True)
class _Budget:
    left: int


def _count(folder: Path, *, git: Git, budget: _Budget, depth: int) -> Changes:
    changes = _count_one(folder, git=git)
    if depth == _SUBMODULE_DEPTH_MAX:
        return changes
    for submodule in _submodules(folder, git=git):
        if budget.left == 0:
            break
        budget.left -= 1
        changes += _count(submodule, git=git, budget=budget, depth=depth + 1)
    return changes


def _count_one(folder: Path, *, git: Git) -> Changes:
    repository = open_repository(folder, git=git)
    try:
        with _stand_in(repository, git=git) as environment:
            # "dirty": compare a submodule's commit, start no git in it.
            what = (
                "--untracked-files=normal",
                "--ignore-submodules=dirty",
                "--no-renames",
                "--no-ahead-behind",
            )
            output = git.tell("status", "--porcelain=v1", "-z", *what, cwd=folder, environment=environment)
    except GitOutputTooLargeError:
        return Changes(complete=False)
    except OSError as fault:
        raise InfraFault(detail="git-dir-unwritable") from fault
    entries = output.split(b"\0")[:-1]
    untracked = sum(entry.startswith(b"??") for entry in entries)
    return Changes(tracked=len(entries) - untracked, untracked=untracked)


@contextmanager
def _stand_in(repository: Repository, *, git: Git) -> Iterator[Mapping[str, str]]:
    """Make the git directory that stands in for the repository's own; yields the environment to select it."""
    settings = _harmless_settings(repository.folder, git=git)
    with tempfile.TemporaryDirectory(prefix="pi-dispatch-git-") as name:
        home = Path(name)
        (home / "refs").mkdir()
        (home / "info").mkdir()
        (home / "HEAD").write_text(f"{repository.sha or 'ref: refs/heads/none'}\n", encoding="ascii")
        (home / "config").write_text(_config(repository, settings), encoding="ascii")
        (home / "info" / "exclude").symlink_to(repository.exclude)
        if git.account is not None:
            os.chown(home, git.account.uid, git.account.gid)
        yield {
            "GIT_DIR": name,
            "GIT_WORK_TREE": ".",
            "GIT_INDEX_FILE": str(repository.index),
            "GIT_OBJECT_DIRECTORY": str(repository.objects),
        }


def _config(repository: Repository, settings: Mapping[str, str]) -> str:
    lines = ["[core]", "repositoryformatversion = 1", "bare = false"]
    lines += [f"{name} = {value}" for name, value in settings.items()]
    return "\n".join([*lines, "[extensions]", f"objectformat = {repository.object_format}", ""])


def _harmless_settings(folder: Path, *, git: Git) -> dict[str, str]:
    """Read the `core` settings that only steer comparison; reading a configuration runs nothing."""
    answer = git.ask("config", "-z", "--get-regexp", f"^core\\.({'|'.join(_HARMLESS)})$", cwd=folder)
    settings: dict[str, str] = {}
    for entry in answer.output.split(b"\0")[:-1]:
        key, _, value = entry.partition(b"\n")
        # The command line's own switches are listed too; the pattern holds none of them.
        if _HARMLESS_VALUE.fullmatch(value):
            settings[key.decode("ascii").removeprefix("core.")] = value.decode("ascii") or "true"
    return settings


def _submodules(folder: Path, *, git: Git) -> list[Path]:
    """List the checked-out submodules that `.gitmodules` names, none outside the folder or behind a link."""
    if not (folder / ".gitmodules").is_file():
        return []
    answer = git.ask(
        "config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$", cwd=folder
    )
    found: list[Path] = []
    for entry in answer.output.split(b"\0")[:-1]:
        parts = os.fsdecode(entry.partition(b"\n")[2]).split("/")
        place = _inside(folder, parts)
        if place is not None and (place / ".git").exists() and place not in found:
            found.append(place)
    return found


def _inside(folder: Path, parts: list[str]) -> Path | None:
    place = folder
    for part in parts:
        if part in {"", ".", "..", ".git"}:
            return None
        place = place / part
        if place.is_symlink() or not place.is_dir():
            return None
    return place
