"""Finds a folder's git data and the commit it stands on."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from runs.outcome import InfraFault
from runs.workspace.git import Git

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Where the git data of a working tree lies, also when `.git` is a file (worktree, submodule).

    `sha` is what HEAD named at that moment; None when it names no commit yet.
    """

    folder: Path
    sha: str | None
    object_format: str
    objects: Path
    index: Path
    exclude: Path


def open_repository(folder: Path, *, git: Git) -> Repository:
    """Ask git about the folder's own `.git`; `InfraFault` when it cannot read it.

    One process, one more for a repository without a commit.
    """
    answer = git.ask(
        "rev-parse",
        *("--git-path", "objects", "--git-path", "index", "--git-path", "info/exclude"),
        *("--show-object-format", "--quiet", "--verify", "HEAD"),
        cwd=folder,
    )
    # One line an answer, and what follows the last; 1 is git's quiet word for "HEAD names no commit".
    lines = os.fsdecode(answer.output).split("\n")
    born = answer.code == 0 and len(lines) == 6 and SHA.fullmatch(lines[4]) is not None
    unborn = answer.code == 1 and len(lines) == 5 and _is_unborn(folder, folder / lines[0], git=git)
    if not (born or unborn):
        raise InfraFault(detail="git-rev-parse-failed")
    return Repository(
        folder=folder,
        sha=lines[4] if born else None,
        object_format=lines[3],
        objects=folder / lines[0],
        index=folder / lines[1],
        exclude=folder / lines[2],
    )


def _is_unborn(folder: Path, objects: Path, *, git: Git) -> bool:
    """Tell a branch without a commit from a branch whose file is damaged: git's exit code is 1 for both."""
    branch = os.fsdecode(git.tell("symbolic-ref", "--quiet", "HEAD", cwd=folder)).strip()
    return not (objects.parent / branch).exists()
