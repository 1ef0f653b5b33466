"""The prepared processes: what they start is what an `exec` would have started."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.harness.prepared import Process, run
from tests.harness.worker_process import ROOT, until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing is prepared on this system")
ENVIRONMENT = {"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo", "A": "1=\udc80"}
TELL = """
import json, os, resource, signal, subprocess, sys, time
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": str(sys.flags),
    "name": __name__, "globals": sorted(globals()), "is_main": sys.modules["__main__"].__dict__ is globals(),
    "environ": dict(os.environ), "native": sorted(map(repr, subprocess.check_output(["env"]).splitlines())),
    "cwd": os.getcwd(), "umask": os.umask(0), "zone": time.tzname,
    "descriptors": [link for fd in range(64) if (link := f"/proc/self/fd/{fd}") and os.path.exists(link)],
    "streams": [
        [s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.buffer.raw.fileno(), s.isatty()]
        for s in (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    ],
    "signals": {n: str(signal.getsignal(n)) for n in sorted(signal.valid_signals())},
    "masked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "group": os.getpgrp() == os.getpid() or os.getpgrp(),
    "session": os.getsid(0) == os.getpid() or os.getsid(0),
    "limits": [resource.getrlimit(n) for n in range(16)],
    "ours": sorted({m.split(".")[0] for m in sys.modules}
        & {"dispatch", "hosts", "pidispatch_site", "runs", "tests"}),
    "given": sys.stdin.read(),
}))
"""
# The words after the program, what it is, and what it is given.
PROGRAMS = {
    "tells what it is": TELL,
    "ends": "pass",
    "ends with a code": "import sys; print('bye'); sys.exit(7)",
    "ends with a complaint": "import sys; sys.exit('no')",
    "fails": "print('so far'); 1 / 0",
    "is interrupted": "raise KeyboardInterrupt",
    "is killed": "import os; print('lost', end=''); os.kill(os.getpid(), 9)",
    "cannot flush": "import os; print('x'); os.dup2(os.open('/dev/full', os.O_WRONLY), 1)",
    "writes into a closed pipe": "import os; r, w = os.pipe(); os.close(r); os.write(w, b'x')",
    "leaves work for the end": "import atexit, threading\natexit.register(print, 'last')\n"
    "threading.Timer(0.1, print, ['first']).start()",
    "closes everything": "import os; os.closerange(0, 3)",
}


@pytest.fixture
def script(tmp_path) -> Callable[[str], list[str]]:
    def written(text: str) -> list[str]:
        (tmp_path / "program.py").write_text(text)
        return [sys.executable, str(tmp_path / "program.py"), "one", "\udc80"]

    return written


def by_exec(words, *, timeout, given, **how):
    return subprocess.run(words, timeout=timeout, input=given, capture_output=True, **how)


def last_lines(done: Any) -> tuple[int, bytes, bytes]:
    """How it ended; of a traceback, which tells the way to the program too, what it ends with."""
    return done.returncode, done.stdout, done.stderr[done.stderr.rfind(b"\n", 0, -1) + 1 :]


def is_prepared(process: Process) -> bool:
    """Whether it is none of our own children."""
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1]) != os.getpid()


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_it_is_what_an_exec_gives(script, tmp_path, program):
    how = {"env": ENVIRONMENT, "cwd": tmp_path, "given": b"\xc3\xa4\r\n", "timeout": 30}

    done = run(script(program), **how)

    assert last_lines(done) == last_lines(by_exec(script(program), **how))
    assert program != TELL or json.loads(done.stdout)["given"] == "\u00e4\r\n"


def test_a_module_is_run_as_by_an_exec_and_in_a_session_of_its_own(script, tmp_path):
    script(TELL)
    words = [sys.executable, "-m", "program", "one"]
    how = {"env": ENVIRONMENT, "cwd": tmp_path, "given": b"", "timeout": 30, "start_new_session": True}
    done = run(words, **how)

    assert last_lines(done) == last_lines(by_exec(words, **how))
    assert json.loads(done.stdout)["session"] is True


def test_it_comes_with_the_libraries_and_nothing_of_a_child_before(script, tmp_path):
    spoils = "import os, sys, django\nsys.path.insert(0, {root!r})\nimport hosts.names\n"
    spoils += "django.spoilt = True; os.environ['SPOILT'] = '1'; os.chdir('/'); os.umask(0o077)"
    asks = "import os, sys\nprint('django' in sys.modules, hasattr(sys.modules.get('django'), 'spoilt'),"
    asks += " 'hosts' in sys.modules, 'SPOILT' in os.environ, os.getcwd(), os.umask(0))"
    before = os.umask(0o027)
    try:
        assert run(script(spoils.format(root=str(ROOT))), env={}, cwd=tmp_path, timeout=30).returncode == 0
        done = run(script(asks), env={}, cwd=tmp_path, timeout=30)
    finally:
        os.umask(before)

    assert done.stdout.decode().split() == ["True", "False", "False", "False", str(tmp_path), str(0o027)]


@pytest.mark.parametrize(
    "changed",
    [
        {"env": {"PYTHONUTF8": "0"}},
        {"env": {"LC_ALL": "C"}},
        {"env": {"LD_PRELOAD": ""}},
        {"env": {}, "preexec_fn": lambda: None},
        {"env": {"LONG": "x" * 100_000}},
    ],
    ids=["Python is told", "a locale", "the loader is told", "something before", "a lot"],
)
def test_what_an_exec_alone_gives_is_an_exec(script, changed):
    words = script("input()")
    with Process(words, env={}, stdin=subprocess.PIPE) as prepared:
        assert is_prepared(prepared)
        prepared.communicate(b"\n")
    with Process(words, stdin=subprocess.PIPE, **changed) as process:
        assert not is_prepared(process)
        process.communicate(b"\n")
    assert process.returncode == 0


@pytest.mark.parametrize(
    "test", ["", "tests/test_manage.py::test_it (call)"], ids=["no test", "of the start"]
)
def test_a_soak_and_a_test_of_the_start_get_an_exec(script, monkeypatch, test):
    monkeypatch.setenv("PYTEST_CURRENT_TEST", test)

    with Process(script("input()"), env={}, stdin=subprocess.PIPE) as process:
        assert not is_prepared(process)
        process.communicate(b"\n")


def test_a_thread_that_stands_otherwise_gets_an_exec(script):
    def start() -> bool:
        with Process(script("input()"), env={}, stdin=subprocess.PIPE) as process:
            answer = is_prepared(process)
            process.communicate(b"\n")
        return answer

    def give_up_privileges() -> None:
        # PR_SET_NO_NEW_PRIVS, which anybody may, for a thread alone.
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)

    with ThreadPoolExecutor(1, initializer=give_up_privileges) as otherwise:
        assert otherwise.submit(start).result() is False
    assert start() is True


def test_it_hears_signals_and_its_end_is_told_at_once(script):
    with Process(
        script("import time; print(flush=True); time.sleep(60)"), env={}, stdout=subprocess.PIPE
    ) as process:
        assert is_prepared(process)
        process.stdout.readline()
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)
        process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{process.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", seconds=10, what="SIGSTOP")
        assert process.poll() is None
        began = time.monotonic()
        process.kill()
        # Until somebody asks for it, its number is its own.
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", seconds=10, what="its end")
        until(lambda: process.poll() is not None, seconds=1, what="its end is told")
        assert time.monotonic() - began < 5
    assert process.returncode == process.wait() == -signal.SIGKILL
    until(lambda: not stat.exists(), seconds=10, what="it is gone")


def test_what_takes_too_long_is_killed(script):
    with pytest.raises(subprocess.TimeoutExpired):
        run(script("import time; time.sleep(60)"), env={}, timeout=0.5)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL], ids=["ends", "is killed"])
def test_the_prepared_process_ends_with_whoever_has_it(script, by):
    """And what it has started lives on, as after an `exec`."""
    words = script("import os; print(os.getpid(), os.getppid(), flush=True); input()")
    starter = "import sys, time; from tests.harness.prepared import Process\n"
    starter += f"process = Process({words!r}, env={{}}); {'time.sleep(60)' if by == signal.SIGKILL else ''}"
    environment = {**os.environ, "PYTEST_CURRENT_TEST": "tests/x.py"}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", starter],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as has_it:
        child, prepared = has_it.stdout.readline().decode().split()
        if by == signal.SIGKILL:
            has_it.kill()
        has_it.wait(timeout=20)
        until(lambda: not is_alive(prepared), seconds=10, what="it ends")
        assert is_alive(child)
        has_it.stdin.close()
        until(lambda: not is_alive(child), seconds=10, what="the child ends by itself")


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
