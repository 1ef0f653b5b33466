"""Who a job runs as (D18, E 1.9): decided from the worker's account and the folder's owner, never root."""

from __future__ import annotations

from dataclasses import dataclass

from runs.outcome import Reason, Refusal
from runs.request import JobUser

# The image's own user `pi`: what a container runs as when no user is passed.
IMAGE_USER = JobUser(1001, 1001)


@dataclass(frozen=True, slots=True)
class Account:
    """A uid and gid of this host; root is possible."""

    uid: int
    gid: int

    @property
    def is_root(self) -> bool:
        """Whether this account may give files away and needs a job user that is somebody else."""
        return self.uid == 0


def job_user(*, worker: Account, owner: Account) -> JobUser | Refusal | None:
    """Decide whom a job on a folder of `owner` runs as; None = the image's own user fits.

    A worker that is not root stands for itself, a root worker for the folder's owner. Refused when that would
    be uid 0 or gid 0.
    """
    account = owner if worker.is_root else worker
    if account.uid == IMAGE_USER.uid:
        return None
    if account.uid == 0 or account.gid == 0:
        return Refusal(Reason.JOB_USER_UNMAPPABLE)
    return JobUser(account.uid, account.gid)


def file_owner(user: JobUser | None) -> JobUser:
    """Answer who owns what the job must be able to write."""
    return user or IMAGE_USER


def git_account(*, worker: Account, owner: Account) -> Account | None:
    """Decide whom git runs as in a folder of `owner`; None = as this process.

    A root worker lends root to no repository: a fault in git's own parsers, or a `.git` that points at a
    place only root can read, is worth no more than the owner's rights.
    """
    return owner if worker.is_root and not owner.is_root else None


def mend_unmappable(folder: str, *, worker: Account, owner: Account) -> str:
    """Say what a person does about a folder that `job_user` refused: one sentence for a command's error."""
    if not worker.is_root:
        return (
            f"This account is uid {worker.uid}, gid {worker.gid}, and no job runs with uid 0 or gid 0: "
            "run the worker as a user whose group is not root."
        )
    return (
        f"{folder} belongs to uid {owner.uid}, gid {owner.gid}, and no job runs as root or in root's group: "
        f"give it to an ordinary user, for example `chown -R 1001:1001 {folder}`, or run the worker as the "
        "user who owns it."
    )
