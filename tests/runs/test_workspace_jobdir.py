from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest

from pidispatch_site import log
from pidispatch_site.errors import OperationalError
from runs.request import JobUser
from runs.workspace.jobdir import (
    ensure_jobs_dir,
    make_job_dir,
    make_outbox,
    remove_job_dir,
    sweep_older_boots,
    write_input,
)
from tests.runs.accounts import ORDINARY, as_ordinary_user, needs_root

pytest_plugins = ["tests.runs.grounds"]

HOST = "0123456789abcdef"
BOOT = f"{HOST}-00000002"
OLDER = f"{HOST}-00000001"


@pytest.fixture(autouse=True)
def _mask() -> object:
    """The modes must not depend on the umask of whoever starts the worker."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_jobs_folder_is_made_for_this_account_alone(tmp_path: Path) -> None:
    ensure_jobs_dir(tmp_path / "state/jobs")
    ensure_jobs_dir(tmp_path / "state/jobs")

    assert mode(tmp_path / "state/jobs") == 0o700


@pytest.mark.parametrize("open_to", [0o750, 0o701, 0o1777])
def test_a_jobs_folder_open_to_others_is_refused_and_stays_as_it_is(tmp_path: Path, open_to: int) -> None:
    tmp_path.chmod(open_to)

    with pytest.raises(OperationalError, match="chmod 700"):
        ensure_jobs_dir(tmp_path)

    assert mode(tmp_path) == open_to


@needs_root
def test_a_jobs_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, ORDINARY.uid, ORDINARY.gid)

    with pytest.raises(OperationalError, match=f"belongs to uid {ORDINARY.uid}"):
        ensure_jobs_dir(tmp_path)


def test_a_jobs_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(OperationalError, match="PI_JOBS_DIR"):
        ensure_jobs_dir(tmp_path / "file/jobs")


def test_a_job_directory_bears_its_boot_and_is_readable_inside(tmp_path: Path) -> None:
    one, two = (make_job_dir(tmp_path / "jobs", boot=BOOT) for _ in range(2))

    assert one != two
    assert one.name.startswith(f"job-{BOOT}-")
    assert (mode(one), mode(one.parent)) == (0o755, 0o700)


def test_input_is_read_only_in_readable_folders(tmp_path: Path) -> None:
    write_input(tmp_path, "prompt.md", b"hello")
    write_input(tmp_path, "pi/skills/a/SKILL.md", b"")
    write_input(tmp_path, "pi/skills/a/b.md", b"\xff")

    assert (tmp_path / "prompt.md").read_bytes() == b"hello"
    assert (tmp_path / "pi/skills/a/b.md").read_bytes() == b"\xff"
    assert {mode(path) for path in tmp_path.rglob("*") if path.is_file()} == {0o444}
    assert {mode(path) for path in tmp_path.rglob("*") if path.is_dir()} == {0o755}


def test_input_never_overwrites_or_follows(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    (tmp_path / "prompt.md").symlink_to(tmp_path / "kept")

    with pytest.raises(FileExistsError):
        write_input(tmp_path, "prompt.md", b"y")

    assert (tmp_path / "kept").read_text() == "x"


@needs_root
def test_roots_outbox_belongs_to_the_jobs_user(tmp_path: Path) -> None:
    outbox = make_outbox(tmp_path, owner=JobUser(ORDINARY.uid, ORDINARY.gid))

    status = outbox.stat()
    assert (status.st_uid, status.st_gid, mode(outbox)) == (ORDINARY.uid, ORDINARY.gid, 0o700)


def test_an_ordinary_workers_outbox_is_its_own(ground: Path) -> None:
    ground.chmod(0o777)

    outbox = as_ordinary_user(lambda: make_outbox(ground, owner=JobUser(1001, 1001)))

    assert outbox.stat().st_uid == (ORDINARY.uid if os.geteuid() == 0 else os.geteuid())


def test_what_older_boots_of_this_host_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    old = [make_job_dir(jobs, boot=OLDER) for _ in range(2)]
    (old[0] / "outbox").mkdir(mode=0o000)
    kept = [
        make_job_dir(jobs, boot=BOOT),
        make_job_dir(jobs, boot="fedcba9876543210-00000001"),
        jobs / "sandboxes",
        jobs / f"other-{OLDER}-x",
        jobs / "job-x",
        jobs / "job-",
    ]
    for path in kept:
        path.mkdir(exist_ok=True)

    assert sweep_older_boots(jobs, boot=BOOT) == 2

    assert sorted(jobs.iterdir()) == sorted(kept)


def test_sweeping_follows_no_link(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    ensure_jobs_dir(jobs)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    (jobs / f"job-{OLDER}-abc").symlink_to(tmp_path / "kept")

    assert sweep_older_boots(jobs, boot=BOOT) == 1

    assert (tmp_path / "kept/file").exists()


def test_where_there_is_no_jobs_folder_nothing_is_swept(tmp_path: Path) -> None:
    assert sweep_older_boots(tmp_path / "nothing", boot=BOOT) == 0


@needs_root
def test_what_cannot_be_removed_is_logged_as_a_count_without_a_path(ground: Path) -> None:
    ground.chmod(0o777)
    stream = io.StringIO()

    def removed() -> str:
        log.configure(log.EventLog(stream))
        job_dir = make_job_dir(ground / "jobs", boot=BOOT)
        (job_dir / "outbox").mkdir()
        return str(job_dir)

    job_dir = Path(as_ordinary_user(removed))
    (job_dir / "foreign").mkdir()
    (job_dir / "foreign/file").write_text("x")

    def swept() -> tuple[int, str]:
        log.configure(log.EventLog(stream))
        return sweep_older_boots(ground / "jobs", boot=f"{HOST}-00000003"), stream.getvalue()

    count, line = as_ordinary_user(swept)

    assert count == 0
    assert json.loads(line) == {"event": "workspace_cleanup_incomplete", "left": 1}


def test_removing_what_is_gone_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remove_job_dir(tmp_path / "nothing")

    assert capsys.readouterr().out == ""
