"""Judges the folder of a local job: for a person before anything is enqueued, and again when the job starts.

Decided here, where the specification is silent:
- A folder given through a symbolic link is accepted and resolved: `run` enqueues the real path and says so,
  so that one folder has one scope; so does a worker with the folder of a schedule. What a job says has no
  link in it: one that is found at its start was put there since, and the job is refused.
- A bare repository and a folder inside a repository are refused (with the repository's root named).
- A repository without a commit is fine: nothing to materialise, and `sha` is null.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from pidispatch_site.errors import ConfigurationError, OperationalError
from runs.outcome import InfraFault, Reason, Refusal
from runs.workspace.changes import Changes, count_changes
from runs.workspace.git import Git
from runs.workspace.head import open_repository
from runs.workspace.jobuser import Account, git_account, job_user, mend_unmappable


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFolder:
    """A folder that a job may be enqueued for.

    `path` is the real path and what belongs into the job. `by_link`: the person named it through a link.
    `linked_git`: `.git` is a file (worktree, submodule), so git will not work inside the container. `sha` is
    None before the first commit.
    """

    path: Path
    sha: str | None
    owner: Account
    by_link: bool
    linked_git: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the person who asked; empty when there is nothing to say."""
        notes = []
        if self.by_link:
            notes.append(f"The folder was given through a symbolic link; the job works on {self.path}.")
        if self.linked_git:
            notes.append(
                "The folder's .git is a file (a worktree or submodule): its repository lies outside the "
                "folder, so git does not work inside the container."
            )
        return tuple(notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFolder:
    """The folder as it stands when the job starts; `path` has no link in it."""

    path: Path
    owner: Account


def check_folder(folder: str, *, account: Account, git: Git, base: Path) -> CheckedFolder:
    """Judge the folder a person named (relative ones from `base`); `account` is who this process runs as.

    Raises `ConfigurationError` with one sentence on what is wrong and what to do, `OperationalError` when the
    folder's disk or git do not answer. Uncommitted changes are `require_clean`'s question.
    """
    named = Path(os.path.normpath(base / _readable_name(folder)))
    try:
        path = Path(os.path.realpath(named, strict=True))
        status = path.stat()
        git_status = _git_status(path, status)
    except OSError as fault:
        raise _folder_error(named, fault) from fault
    _require_folder(path, status, account)
    if git_status is None:
        raise ConfigurationError(_no_repository(path))
    owner = Account(status.st_uid, status.st_gid)
    if account.is_root and isinstance(job_user(worker=account, owner=owner), Refusal):
        raise ConfigurationError(mend_unmappable(str(path), worker=account, owner=owner))
    return CheckedFolder(
        path=path,
        sha=_head(path, git=git.as_account(git_account(worker=account, owner=owner))),
        owner=owner,
        by_link=path != named,
        linked_git=stat.S_ISREG(git_status.st_mode),
    )


def require_clean(checked: CheckedFolder, *, account: Account, git: Git) -> None:
    """Raise a `ConfigurationError` that counts the uncommitted changes, if there are any."""
    owner = git_account(worker=account, owner=checked.owner)
    # Comparing files, git resolves the whole path of the folder, which an owner kept out above it cannot. As
    # nothing of the repository's configuration counts there, this process may look itself.
    reachable = owner is not None and _can_enter(checked.path, owner)
    try:
        changes = count_changes(checked.path, git=git.as_account(owner if reachable else None))
    except InfraFault as fault:
        raise OperationalError(
            f"git could not tell whether {checked.path} has uncommitted changes ({fault.detail}): "
            "see what `git status` says there, or use --force to run without the check."
        ) from fault
    if changes:
        raise ConfigurationError(
            f"{checked.path} has uncommitted changes ({_counted(changes)}): the agent edits the folder in "
            "place and could mix its work with yours. Commit, stash or ignore them, or use --force. "
            "(Files that a clean filter such as LFS rewrites may be counted although they did not change.)"
        )


def look(folder: str) -> WorkFolder | Refusal:
    """Look at the job's folder when the job starts.

    A folder that is not there, no folder or no working tree is refused; any other answer of the disk is an
    `InfraFault`. Both say what it was by a token and name nothing.
    """
    if "\0" in folder or not os.path.isabs(folder) or not _is_utf8(folder):  # noqa: PTH117
        return _refused("path-unusable")
    named = Path(os.path.normpath(folder))
    try:
        path = Path(os.path.realpath(named, strict=True))
        status = path.stat()
        working_tree = _git_status(path, status) is not None
    except (FileNotFoundError, NotADirectoryError):
        return _refused("folder-missing")
    except OSError as fault:
        raise InfraFault(detail="folder-unreadable") from fault
    if path != named:
        return _refused("is-a-link")
    if not working_tree:
        return _refused("not-a-working-tree" if stat.S_ISDIR(status.st_mode) else "not-a-folder")
    return WorkFolder(path=path, owner=Account(status.st_uid, status.st_gid))


def _refused(token: str) -> Refusal:
    return Refusal(Reason.CONFIG_REFUSED, token)


def _require_folder(path: Path, status: os.stat_result, account: Account) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(
            f"{path} is a file: a job works on a folder, the working tree of a git repository."
        )
    if not os.access(path, os.R_OK | os.X_OK):
        raise ConfigurationError(
            f"{path} cannot be read by this account (uid {account.uid}): change its mode or owner."
        )


def _git_status(path: Path, status: os.stat_result) -> os.stat_result | None:
    """Look at the folder's `.git`; None when there is none, or one that is neither folder nor plain file."""
    if not stat.S_ISDIR(status.st_mode):
        return None
    try:
        found = (path / ".git").stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found if stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode) else None


def _can_enter(path: Path, account: Account) -> bool:
    """Answer whether mode bits (access lists aside) let the account through every folder above `path`."""
    try:
        return all(_lets_through(place.stat(), account) for place in path.parents)
    except OSError:
        return False


def _lets_through(status: os.stat_result, account: Account) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _head(path: Path, *, git: Git) -> str | None:
    try:
        return open_repository(path, git=git).sha
    except InfraFault as fault:
        if fault.detail == "git-missing":
            raise OperationalError("git is not installed, or not on the PATH: install it.") from fault
        raise ConfigurationError(
            f"git cannot read the repository in {path} ({fault.detail}): see what `git status` says there."
        ) from fault


def _readable_name(folder: str) -> str:
    if not folder or folder.isspace():
        raise ConfigurationError("The folder is empty: name the working tree of a git repository.")
    if "\0" in folder or not _is_utf8(folder):
        raise ConfigurationError(
            "The folder's name is not valid UTF-8: rename it, or give it by another name."
        )
    return folder


def _is_utf8(text: str) -> bool:
    """Answer whether a path survives JSON: the engine's own API cannot name any other."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _folder_error(named: Path, fault: OSError) -> ConfigurationError | OperationalError:
    if isinstance(fault, FileNotFoundError):
        return ConfigurationError(f"{named} does not exist: name the working tree of a git repository.")
    if isinstance(fault, NotADirectoryError):
        return ConfigurationError(f"{named} leads through a file: name the working tree of a git repository.")
    if isinstance(fault, PermissionError):
        return ConfigurationError(f"{named} cannot be read by this account: change its mode or owner.")
    return OperationalError(f"{named} cannot be looked at: {os.strerror(fault.errno or 0)}.")


def _no_repository(path: Path) -> str:
    if all((path / part).exists() for part in ("HEAD", "objects", "refs")):
        return f"{path} is a bare repository: a job needs a working tree, so name a clone of it."
    root = next((parent for parent in path.parents if (parent / ".git").exists()), None)
    if root is not None:
        return (
            f"{path} is a folder inside the repository {root}: a job works on the whole tree, so name that."
        )
    return f"{path} is not a git repository: run `git init` there and commit, or name another folder."


def _counted(changes: Changes) -> str:
    if not changes.complete:
        return "more than can be listed"
    return f"{changes.tracked} changed, {changes.untracked} untracked"
