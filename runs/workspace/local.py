"""Prepares a local job: from the job's data to the folders a container mounts (E 3.1, 3.2)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pidispatch_site.errors import OperationalError
from runs.outcome import InfraFault, Reason, Refusal
from runs.request import JobUser
from runs.workspace.event import CronTrigger, Occurrence, Source, local_event
from runs.workspace.folder import WorkFolder, look
from runs.workspace.git import Git
from runs.workspace.head import open_repository
from runs.workspace.jobdir import make_job_dir, make_outbox, remove_job_dir, write_input
from runs.workspace.jobuser import Account, file_owner, git_account, job_user
from runs.workspace.materialise import materialise
from runs.workspace.prompt import local_prompt, prompt_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalJob:
    """What preparation needs of a local job's data: a `task` with or without a `flow`, or a `command`."""

    folder: str
    task: str | None = None
    flow: str | None = None
    command: str | None = None
    source: Source = Source.MANUAL
    trigger: CronTrigger | None = None
    occurrence: Occurrence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The places of one attempt; `sha` is the commit that `.pi` and the chaining gate are pinned to.

    `user` None = the image's own user. `workspace` is the operator's folder itself.
    """

    job_dir: Path
    workspace: Path
    outbox: Path
    sha: str | None
    user: JobUser | None


def prepare(job: LocalJob, *, jobs_dir: Path, boot: str, account: Account, git: Git) -> Prepared | Refusal:
    """Make everything a container of this job mounts; `account` is who this process runs as.

    Raises `InfraFault` when the disk or git could not tell. After a refusal or a fault nothing is left
    behind. The folder itself is only read.
    """
    found = look(job.folder)
    if isinstance(found, Refusal):
        return found
    user = _user(found, account)
    if isinstance(user, Refusal):
        return user
    as_owner = git.as_account(git_account(worker=account, owner=found.owner))
    sha = open_repository(found.path, git=as_owner).sha
    contents = materialise(found.path, sha=sha, git=as_owner)
    if isinstance(contents, Refusal):
        return contents
    inputs = {f"pi/{path}": content for path, content in contents.items()}
    inputs["prompt.md"] = prompt_bytes(local_prompt(task=job.task, flow=job.flow, command=job.command))
    inputs["event.json"] = local_event(
        source=job.source,
        folder_name=found.path.name,
        sha=sha,
        trigger=job.trigger,
        occurrence=job.occurrence,
    )
    job_dir, outbox = _write(inputs, jobs_dir=jobs_dir, boot=boot, user=user)
    return Prepared(job_dir=job_dir, workspace=found.path, outbox=outbox, sha=sha, user=user)


def cleanup(prepared: Prepared) -> None:
    """Remove the job directory once its container is gone; the workspace is the operator's. Never raises."""
    remove_job_dir(prepared.job_dir)


def _user(found: WorkFolder, account: Account) -> JobUser | Refusal | None:
    """Map the job's user; refused too when it could not write the folder it is to work on."""
    user = job_user(worker=account, owner=found.owner)
    if isinstance(user, Refusal):
        # By whom the job would have run as: the folder's owner, or a worker of root's group.
        return Refusal(user.reason, "owner-unmappable" if account.is_root else "worker-unmappable")
    if not account.is_root and not os.access(found.path, os.R_OK | os.W_OK | os.X_OK):
        return Refusal(Reason.JOB_USER_UNMAPPABLE, "not-writable")
    return user


def _write(inputs: dict[str, bytes], *, jobs_dir: Path, boot: str, user: JobUser | None) -> tuple[Path, Path]:
    try:
        job_dir = make_job_dir(jobs_dir, boot=boot)
    except (OSError, OperationalError) as fault:
        raise InfraFault(detail="jobs-dir-unusable") from fault
    try:
        for name, content in inputs.items():
            write_input(job_dir, name, content)
        return job_dir, make_outbox(job_dir, owner=file_owner(user))
    except OSError as fault:
        remove_job_dir(job_dir)
        raise InfraFault(detail="job-dir-unwritable") from fault
    except BaseException:
        remove_job_dir(job_dir)
        raise
