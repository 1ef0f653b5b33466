from __future__ import annotations

import json
import os
import resource
import signal
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from runs.outcome import InfraFault, Reason, Refusal
from runs.request import JobUser
from runs.workspace.event import CronTrigger, Source
from runs.workspace.git import Git
from runs.workspace.jobuser import Account
from runs.workspace.local import LocalJob, Prepared, cleanup, prepare
from tests.runs.accounts import ORDINARY, as_ordinary_user, current, needs_root, ordinary
from tests.runs.repositories import Repo

pytest_plugins = ["tests.runs.grounds"]

BOOT = "0123456789abcdef-00000001"


@pytest.fixture
def own(repo: Repo) -> Repo:
    """A repository of the ordinary user, with something for the agent."""
    repo.commit({".pi/APPEND_SYSTEM.md": "persona", ".pi/skills/fix/SKILL.md": "skill"})
    if os.geteuid() == 0:
        repo.give_to(ORDINARY.uid, ORDINARY.gid)
    return repo


def ready(job: LocalJob, jobs_dir: Path, *, account: Account | None = None, git: Git | None = None):
    return prepare(job, jobs_dir=jobs_dir, boot=BOOT, account=account or current(), git=git or Git())


def prepared(job: LocalJob, jobs_dir: Path, **how) -> Prepared:
    result = ready(job, jobs_dir, **how)
    assert isinstance(result, Prepared)
    return result


def files(job_dir: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(job_dir)): path.read_bytes() for path in job_dir.rglob("*") if path.is_file()
    }


def state_of(path: Path) -> dict[str, tuple]:
    return {
        str(entry): (
            entry.lstat().st_mode,
            entry.lstat().st_uid,
            entry.lstat().st_mtime_ns,
            entry.lstat().st_size,
        )
        for entry in [path, *path.rglob("*")]
    }


def test_the_whole_of_a_job_with_a_flow(own: Repo, tmp_path: Path) -> None:
    job = LocalJob(folder=str(own.path), task="Do it.", flow="fix")

    made = prepared(job, tmp_path / "jobs")

    sha = own.git("rev-parse", "HEAD")
    assert made.workspace == own.path
    assert made.sha == sha
    assert made.outbox == made.job_dir / "outbox"
    assert made.job_dir.parent == tmp_path / "jobs"
    assert files(made.job_dir) == {
        "prompt.md": b'Use the skill "fix" for this job.\n'
        b"The context of this job (what started it, on which folder and commit) is in /job/event.json.\n"
        b"\nDo it.",
        "event.json": f'{{"source":"manual","folder":"repo","sha":"{sha}"}}\n'.encode(),
        "pi/APPEND_SYSTEM.md": b"persona",
        "pi/skills/fix/SKILL.md": b"skill",
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.job_dir.rglob("*") if path.is_file()} == {
        0o444
    }


def test_a_command_jobs_prompt_is_the_command(own: Repo, tmp_path: Path) -> None:
    made = prepared(LocalJob(folder=str(own.path), command="release now"), tmp_path / "jobs")

    assert (made.job_dir / "prompt.md").read_bytes() == b"/release now"


def test_a_job_before_the_first_commit_has_no_pi_and_no_sha(ground: Path, tmp_path: Path) -> None:
    repo = Repo.make(ground / "new")
    repo.write(".pi/APPEND_SYSTEM.md", "not committed")
    if os.geteuid() == 0:
        repo.give_to(ORDINARY.uid, ORDINARY.gid)

    made = prepared(LocalJob(folder=str(repo.path), task="x"), tmp_path / "jobs")

    assert made.sha is None
    assert set(files(made.job_dir)) == {"prompt.md", "event.json"}
    assert json.loads((made.job_dir / "event.json").read_bytes())["sha"] is None


NIGHTLY = {"source": Source.CRON, "trigger": CronTrigger(id="nightly", pattern="0 3 * * *")}


def test_a_cron_job_tells_its_schedule(own: Repo, tmp_path: Path) -> None:
    made = prepared(LocalJob(folder=str(own.path), task="x", **NIGHTLY), tmp_path / "jobs")

    assert json.loads((made.job_dir / "event.json").read_bytes())["trigger"]["id"] == "nightly"


def test_the_folder_is_only_read(own: Repo, tmp_path: Path) -> None:
    own.write("README.md", "dirty")
    before = state_of(own.path)

    made = prepared(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs")
    cleanup(made)

    assert state_of(own.path) == before


def test_cleaning_up_leaves_nothing_but_the_folder(own: Repo, tmp_path: Path) -> None:
    made = prepared(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs")
    (made.outbox / "deep/er").mkdir(parents=True)
    (made.outbox / "link").symlink_to(own.path)
    (made.outbox / "deep").chmod(0o000)

    cleanup(made)
    cleanup(made)

    assert list((tmp_path / "jobs").iterdir()) == []
    assert (own.path / "README.md").exists()


# Refusals and faults leave nothing


@pytest.mark.parametrize(
    ("make", "reason", "detail"),
    [
        pytest.param(
            lambda repo: repo.path / "nothing",
            Reason.CONFIG_REFUSED,
            "folder-missing",
            id="missing folder",
        ),
        pytest.param(
            lambda repo: repo.commit({f".pi/skills/fix/{n}": "x" for n in range(64)}) and repo.path,
            Reason.PI_TOO_MANY_FILES,
            None,
            id="too many files",
        ),
        pytest.param(
            lambda repo: repo.commit({".pi/APPEND_SYSTEM.md": "x" * (1024 * 1024 + 1)}) and repo.path,
            Reason.PI_FILE_TOO_LARGE,
            None,
            id="a file too large",
        ),
    ],
)
def test_after_a_refusal_nothing_is_left(
    own: Repo, tmp_path: Path, make, reason: Reason, detail: str
) -> None:
    folder = make(own)
    if os.geteuid() == 0:
        own.give_to(ORDINARY.uid, ORDINARY.gid)

    assert ready(LocalJob(folder=str(folder), task="x"), tmp_path / "jobs") == Refusal(reason, detail)
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("asked_by", [{}, NIGHTLY], ids=["a person", "a schedule"])
def test_a_folder_that_became_a_link_since_is_refused(own: Repo, tmp_path: Path, asked_by: dict) -> None:
    """Its scope is that of the name: the folder behind it may have a job at this moment."""
    own.path.rename(own.path.parent / "elsewhere")
    own.path.symlink_to("elsewhere")

    refused = ready(LocalJob(folder=str(own.path), task="x", **asked_by), tmp_path / "jobs")

    assert refused == Refusal(Reason.CONFIG_REFUSED, "is-a-link")


def broken_git(repo: Repo) -> Git:
    repo.write(".git/HEAD", "rubbish")
    return Git()


def slow_git(repo: Repo) -> Git:
    (repo.path / ".git/HEAD").unlink()
    os.mkfifo(repo.path / ".git/HEAD")
    return Git(time_limit=timedelta(seconds=0.2))


@pytest.mark.parametrize(
    ("make", "token"),
    [
        pytest.param(broken_git, "git-rev-parse-failed", id="broken repository"),
        pytest.param(slow_git, "git-timeout", id="git hangs"),
        pytest.param(lambda repo: Git(program="no-such-git"), "git-missing", id="no git"),
    ],
)
def test_when_git_cannot_tell_it_is_a_fault_and_nothing_is_left(
    own: Repo, tmp_path: Path, make, token
) -> None:
    git = make(own)

    with pytest.raises(InfraFault) as fault:
        ready(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs", git=git)

    assert fault.value.detail == token
    assert not (tmp_path / "jobs").exists()


def test_a_jobs_folder_that_cannot_be_used_is_a_fault(own: Repo, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir(mode=0o755)

    with pytest.raises(InfraFault) as fault:
        ready(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs")

    assert fault.value.detail == "jobs-dir-unusable"


def test_a_disk_that_fails_in_the_middle_leaves_nothing(own: Repo, ground: Path) -> None:
    jobs = ground / "jobs"
    ground.chmod(0o777)

    def out_of_space() -> str:
        # A full disk for this child only: no file may grow beyond 5 bytes, so the first input fails.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5, limits[1]))
        try:
            ready(LocalJob(folder=str(own.path), command="toolong"), jobs, account=ordinary())
        except InfraFault as fault:
            return str(fault.detail)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        return "prepared"

    own.git("rm", "-q", "-r", ".pi")
    own.commit()
    if os.geteuid() == 0:
        own.give_to(ORDINARY.uid, ORDINARY.gid)

    assert as_ordinary_user(out_of_space) == "job-dir-unwritable"
    assert list(jobs.iterdir()) == []


# Whose job it is


@needs_root
def test_under_a_root_worker_the_job_is_the_folders_owners(own: Repo, tmp_path: Path) -> None:
    made = prepared(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs")

    assert made.user == JobUser(ORDINARY.uid, ORDINARY.gid)
    assert made.outbox.stat().st_uid == ORDINARY.uid
    assert made.job_dir.stat().st_uid == 0


@needs_root
def test_the_images_own_user_is_not_passed_and_still_owns_the_outbox(own: Repo, tmp_path: Path) -> None:
    own.give_to(1001, 1001)

    made = prepared(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs")

    assert made.user is None
    assert (made.outbox.stat().st_uid, made.outbox.stat().st_gid) == (1001, 1001)


@needs_root
def test_roots_own_folder_is_refused(repo: Repo, tmp_path: Path) -> None:
    refused = ready(LocalJob(folder=str(repo.path), task="x"), tmp_path / "jobs")

    assert refused == Refusal(Reason.JOB_USER_UNMAPPABLE, "owner-unmappable")
    assert not (tmp_path / "jobs").exists()


@needs_root
def test_a_root_worker_needs_no_way_in_for_the_owner(own: Repo, tmp_path: Path) -> None:
    own.path.parent.chmod(0o700)

    assert prepared(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs").sha


@needs_root
def test_a_root_worker_reads_nothing_that_the_owner_may_not(own: Repo, tmp_path: Path) -> None:
    secret = Repo.make(tmp_path / "secret")
    secret.commit({".pi/APPEND_SYSTEM.md": "secret"})
    (own.path / ".git").rename(own.path.parent / "was")
    (own.path / ".git").write_text(f"gitdir: {secret.path}/.git\n")

    with pytest.raises(InfraFault, match="git-rev-parse-failed"):
        ready(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs")


def test_an_ordinary_worker_stands_for_itself(own: Repo, ground: Path) -> None:
    ground.chmod(0o777)

    def work() -> tuple[JobUser | None, int, list[str]]:
        made = prepared(LocalJob(folder=str(own.path), task="x"), ground / "jobs", account=ordinary())
        owner = made.outbox.stat().st_uid
        cleanup(made)
        return made.user, owner, [path.name for path in (ground / "jobs").iterdir()]

    user, owner, left = as_ordinary_user(work)

    assert user == (None if ordinary().uid == 1001 else JobUser(ordinary().uid, ordinary().gid))
    assert (owner, left) == (ordinary().uid, [])


@needs_root
def test_an_ordinary_worker_is_refused_a_folder_it_may_only_read(repo: Repo, ground: Path) -> None:
    ground.chmod(0o777)

    refused = as_ordinary_user(
        lambda: ready(LocalJob(folder=str(repo.path), task="x"), ground / "jobs", account=ordinary())
    )

    assert refused == Refusal(Reason.JOB_USER_UNMAPPABLE, "not-writable")


def test_a_worker_of_roots_group_is_told_that_it_is_the_one(own: Repo, tmp_path: Path) -> None:
    refused = ready(LocalJob(folder=str(own.path), task="x"), tmp_path / "jobs", account=Account(23456, 0))

    assert refused == Refusal(Reason.JOB_USER_UNMAPPABLE, "worker-unmappable")
