from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hosts import identity
from pidispatch_site.errors import OperationalError

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys
from pathlib import Path
from hosts.identity import WorkerLock
with WorkerLock(Path(sys.argv[1])):
    print("held", flush=True)
    {then}
"""


def holder(state_dir, then="sys.stdin.read()"):
    """A real process that holds the lock until it is told to end, or killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(then=then), str(state_dir)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def end(process):
    process.kill()
    process.communicate()


def test_the_id_of_a_host_is_made_once_and_kept(state_dir):
    first = identity.host_id(state_dir)

    assert len(first) == 16
    assert int(first, 16) >= 0
    assert identity.host_id(state_dir) == first
    assert (state_dir / "host-id").stat().st_mode & 0o777 == 0o600


def test_the_first_who_asks_makes_the_directory(tmp_path):
    identity.host_id(tmp_path / "deep" / "state")

    assert (tmp_path / "deep" / "state").stat().st_mode & 0o777 == 0o700


def test_many_processes_that_ask_at_once_get_one_id(state_dir):
    context = multiprocessing.get_context("spawn")

    with context.Pool(4) as pool:
        found = pool.map(identity.host_id, [state_dir] * 24, chunksize=1)

    assert len(set(found)) == 1
    assert [path.name for path in state_dir.iterdir()] == ["host-id"]


@pytest.mark.parametrize("content", ["", "0123456789ABCDEF", "0123456789abcdef\n", "x" * 16])
def test_a_file_that_holds_something_else_is_not_replaced(state_dir, content):
    (state_dir / "host-id").write_text(content)

    with pytest.raises(OperationalError, match="16 hexadecimal digits"):
        identity.host_id(state_dir)
    assert (state_dir / "host-id").read_text() == content


def test_a_boot_tells_its_host():
    boots = {identity.new_boot("0123456789abcdef") for _ in range(100)}

    assert len(boots) == 100
    assert {identity.host_of(boot) for boot in boots} == {"0123456789abcdef"}


@pytest.mark.parametrize(
    "text", ["", "0123456789abcdef", "0123456789abcdef-0123", "x-y", "0123456789abcdef-01234567\n"]
)
def test_a_text_that_is_no_boot_tells_none(text):
    assert identity.host_of(text) is None


def test_a_second_worker_of_a_directory_is_refused_and_told_of_the_first(state_dir):
    first = holder(state_dir)
    try:
        with (
            pytest.raises(OperationalError, match=rf"running already \(process {first.pid}\)"),
            identity.WorkerLock(state_dir),
        ):
            pytest.fail("two workers hold one lock")
    finally:
        end(first)


def test_another_directory_is_another_host(state_dir, tmp_path):
    first = holder(state_dir)
    try:
        with identity.WorkerLock(tmp_path / "other"):
            pass
    finally:
        end(first)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_leaves_the_lock_to_the_next_at_once(state_dir, how):
    first = holder(state_dir)
    first.send_signal(how)
    first.wait()

    with identity.WorkerLock(state_dir):
        assert (state_dir / "worker.lock").read_text() == f"{os.getpid()}\n"
    first.communicate()


def test_a_stopped_worker_still_has_it(state_dir):
    first = holder(state_dir)
    first.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(OperationalError), identity.WorkerLock(state_dir):
            pytest.fail("a worker that may go on lost its lock")
    finally:
        end(first)


def test_a_child_that_outlives_its_worker_does_not_keep_the_lock(state_dir):
    child = "import subprocess; print(subprocess.Popen(['sleep', '60'], close_fds=False).pid, flush=True)"
    first = holder(state_dir, then=child)
    pid = int(first.stdout.readline())
    first.wait()
    try:
        with identity.WorkerLock(state_dir):
            os.kill(pid, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        first.communicate()


def test_the_lock_is_free_after_its_block_and_can_be_taken_again(state_dir):
    lock = identity.WorkerLock(state_dir)

    for _ in range(2):
        with lock:
            pass
