"""The directory of one job, mounted read-only at `/job` (contracts 1, E 1.2).

Its name is `job-<boot>-<random>`, so that those of older boots of this host can be told from the living ones.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from pidispatch_site.errors import OperationalError
from pidispatch_site.log import event
from runs.request import JobUser
from runs.workspace.removal import remove_tree

_PREFIX = "job-"


def ensure_jobs_dir(jobs_dir: Path) -> None:
    """Make `PI_JOBS_DIR` (0700) if it is not there; `OperationalError` when it is not ours alone.

    An existing one is never re-moded: a mistyped setting must not lock other people out of their folder.
    """
    try:
        jobs_dir.parent.mkdir(parents=True, exist_ok=True)
        jobs_dir.mkdir(mode=0o700, exist_ok=True)
        status = jobs_dir.stat()
    except OSError as fault:
        raise OperationalError(
            f"PI_JOBS_DIR ({jobs_dir}) cannot be made: {os.strerror(fault.errno or 0)}. "
            "Name a folder on a local disk."
        ) from fault
    if status.st_uid != os.geteuid():
        raise OperationalError(
            f"PI_JOBS_DIR ({jobs_dir}) belongs to uid {status.st_uid}, this account is uid {os.geteuid()}: "
            "give it a folder of its own."
        )
    if status.st_mode & 0o077:
        raise OperationalError(
            f"PI_JOBS_DIR ({jobs_dir}) is open to others (mode {stat.S_IMODE(status.st_mode):04o}): "
            f"name a folder of its own, or run `chmod 700 {jobs_dir}`."
        )


def make_job_dir(jobs_dir: Path, *, boot: str) -> Path:
    """Make a new job directory, 0755 so that the job's user can read it; its parent keeps others out."""
    ensure_jobs_dir(jobs_dir)
    path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{boot}-", dir=jobs_dir))
    path.chmod(0o755)
    return path


def write_input(job_dir: Path, name: str, content: bytes) -> None:
    """Write one input file (0444) and its folders (0755); `name` is relative and already validated."""
    path = job_dir / name
    missing = [folder for folder in path.parents if folder != job_dir and job_dir in folder.parents]
    for folder in reversed(missing):
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o444)


def make_outbox(job_dir: Path, *, owner: JobUser) -> Path:
    """Make the folder mounted at `/outbox`, 0700 and the job's user's; only root can give it away."""
    path = job_dir / "outbox"
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(path, owner.uid, owner.gid)
    return path


def remove_job_dir(job_dir: Path) -> None:
    """Remove a job directory and all the job left in it; what stays is logged by count. Never raises."""
    left = remove_tree(job_dir)
    if left:
        event("workspace_cleanup_incomplete", left=left)


def sweep_older_boots(jobs_dir: Path, *, boot: str) -> int:
    """Remove the job directories that older boots of this host left; answers how many are gone. Never raises.

    Only after the boot reap: a container of an older boot still has its directory mounted. Directories of
    other hosts (a shared `PI_JOBS_DIR`) are left alone.
    """
    removed = 0
    for path in _older(jobs_dir, boot):
        remove_job_dir(path)
        removed += not path.exists()
    return removed


def _older(jobs_dir: Path, boot: str) -> list[Path]:
    host = boot.rpartition("-")[0]
    found: list[Path] = []
    try:
        names = [path.name for path in jobs_dir.iterdir()]
    except OSError:
        return found
    for name in names:
        other = name.removeprefix(_PREFIX).rpartition("-")[0]
        if name.startswith(_PREFIX) and other != boot and other.rpartition("-")[0] == host:
            found.append(jobs_dir / name)
    return found
