"""Whatever the mask of who calls: the state directory's files are its owner's alone, a job's work is not."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dispatch.consolekit import Console, read_until
from tests.runs.accounts import ORDINARY
from tests.runs.repositories import Repo

EMBEDDED = {
    "VALKEY_URL": "embedded",
    "PI_WORKER_NAME": None,
    "PI_BACKEND": "process",
    "PI_CAPTURE_JOB_LOGS": "1",
    "ANTHROPIC_API_KEY": "none-needed",
}


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """The mask of an operator who keeps nothing from anybody."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def short_home() -> Iterator[Path]:
    """A Unix socket's name ends at some hundred characters."""
    with tempfile.TemporaryDirectory(prefix="pd-own-") as home:
        yield Path(home)


def open_to_others(folder: Path) -> list[str]:
    return [
        f"{path.relative_to(folder)} {stat.filemode(path.lstat().st_mode)}"
        for path in folder.rglob("*")
        if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]


def test_a_fresh_machine_gets_private_tables_from_whichever_command_comes_first(tmp_path):
    for name, words in {"a": ["migrate", "--verbosity", "0"], "b": ["rebuildruns"]}.items():
        console = Console(tmp_path / name)
        (console.state / "logs").mkdir(mode=0o700)

        said = console.run(*words)

        assert said.code == 0, said.err
        assert (console.state / "db.sqlite3").exists()
        assert open_to_others(console.state) == []


def test_a_worker_and_its_jobs_leave_private_files_and_work_that_others_can_read(short_home):
    console = Console(short_home, variables=EMBEDDED)
    repo = Repo.make(short_home / "shop")
    repo.commit({"README.md": "x"})
    if os.geteuid() == 0:
        repo.give_to(ORDINARY.uid, ORDINARY.gid)
    try:
        with console.running("runworker") as worker:
            read_until(worker.stdout, "worker_started")
            done = console.run("run", str(repo.path), "--task", "Say hello in GREETING.md.", "--wait")
            worker.send_signal(signal.SIGTERM)
            worker.wait(timeout=15)
    finally:
        console.run("valkey", "stop")

    assert done.code == 0, done.err
    assert {"db.sqlite3", "worker.lock", "valkey", "logs"} <= {path.name for path in console.state.iterdir()}
    assert sorted(path.suffix for path in (console.state / "logs").iterdir()) == [".json", ".log"]
    assert open_to_others(console.state) == []
    assert stat.S_IMODE((repo.path / "GREETING.md").stat().st_mode) == 0o644


def test_the_web_process_leaves_private_files(tmp_path):
    console = Console(tmp_path)
    with console.running("web", "--bind", "127.0.0.1:0") as web:
        read_until(web.stdout, "Console:")
        console.run("loginlink")
        web.send_signal(signal.SIGTERM)
        web.wait(timeout=15)

    assert (console.state / "db.sqlite3").exists()
    assert open_to_others(console.state) == []
