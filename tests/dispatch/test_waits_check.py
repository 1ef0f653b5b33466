"""A check is one child process, here of real scripts: its verdict, its bounded time, nothing left of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dispatch.waits.check import CheckResult, Verdict, is_usable_argument, run_check

ENVIRONMENT = {"PATH": os.defpath}
MISSING = CheckResult(Verdict.MISSING, None, "spawn")
SPAWN_FAULT = CheckResult(Verdict.FAULT, None, "spawn")
GO = CheckResult(Verdict.GO, 0, "exit")


def never() -> bool:
    return False


def check(
    program: Path, *, timeout_ms: int = 20_000, stop: Callable[[], bool] = never, **changed
) -> CheckResult:
    environment = changed.pop("environment", ENVIRONMENT)
    return run_check(
        program, changed.pop("argument", "job-1"), environment=environment, timeout_ms=timeout_ms, stop=stop
    )


def children() -> set[str]:
    """The pids of our children, zombies included."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.add(stat.parent.name)
    return found


def state_of_process() -> tuple[set[str], set[str], set[threading.Thread]]:
    return children(), {one.name for one in Path("/proc/self/fd").iterdir()}, set(threading.enumerate())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = state_of_process()
    yield

    def left() -> list[set[Any]]:
        return [now - then for now, then in zip(state_of_process(), before, strict=True)]

    # What other tests of this process left may go meanwhile; nothing may be added.
    assert until(lambda: not any(left()), seconds=2), left()


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    def write(body: str, *, name: str = "check", shebang: str = "#!/bin/sh\n") -> Path:
        path = tmp_path / name
        path.write_text(f"{shebang}{body}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def clock() -> Callable[[], float]:
    begun = time.monotonic()
    return lambda: time.monotonic() - begun


@pytest.mark.parametrize(
    ("body", "verdict", "code", "detail"),
    [
        ("exit 0", Verdict.GO, 0, "exit"),
        ("exit 1", Verdict.FAULT, 1, "exit"),
        ("exit 2", Verdict.REFUSE, 2, "exit"),
        ("exit 3", Verdict.HOLD, 3, "not-yet"),
        ("exit 77", Verdict.FAULT, 77, "exit"),
        ("exit 255", Verdict.FAULT, 255, "exit"),
        ("ulimit -c 0; kill -SEGV $$", Verdict.FAULT, None, "signal-SIGSEGV"),
        ("kill -KILL $$", Verdict.FAULT, None, "signal-SIGKILL"),
        ("kill -TERM $$", Verdict.FAULT, None, "signal-SIGTERM"),
        ("kill -40 $$", Verdict.FAULT, None, "signal-40"),
        ("exec 1>&- 2>&-; sleep 0.2; exit 3", Verdict.HOLD, 3, "not-yet"),
    ],
)
def test_an_end_of_its_own_is_a_verdict(script, body, verdict, code, detail):
    assert check(script(body)) == CheckResult(verdict, code, detail)


#: What a check does, and how long it is there for at least and at most.
HANGING = [
    ("exec sleep 60", 0.3, 1.9),
    ("sleep 60; exit 0", 0.3, 1.9),
    ("trap 'exit 0' TERM; while :; do sleep 0.1; done", 0.3, 1.9),
    ("trap '' TERM; while :; do sleep 0.1; done", 2.3, 4),
    ("kill -STOP $$", 2.3, 4),
]


def test_checks_that_hang_are_ended_and_could_not_tell(script):
    programs = [script(body, name=f"check-{number}") for number, (body, _, _) in enumerate(HANGING)]

    def timed(program: Path) -> tuple[CheckResult, float]:
        begun = time.monotonic()
        return check(program, timeout_ms=300), time.monotonic() - begun

    with ThreadPoolExecutor(len(programs)) as threads:
        ended = list(threads.map(timed, programs))

    for (body, least, most), (result, took) in zip(HANGING, ended, strict=True):
        assert (result.verdict, result.code, result.detail) == (Verdict.FAULT, None, "timeout"), body
        assert least <= took <= most, body


def test_what_a_hung_check_started_is_ended_with_it(script, tmp_path):
    check(script(f"sleep 60 & echo $! >{tmp_path}/pid; sleep 60"), timeout_ms=500)

    pid = int((tmp_path / "pid").read_text())
    assert until(lambda: not is_alive(pid))


@pytest.mark.parametrize(
    ("body", "stdout", "stderr"),
    [
        ("head -c 3000000 /dev/zero; head -c 1000000 /dev/zero >&2", 3_000_000, 1_000_000),
        ("echo hello; exec 1>&-; echo oh >&2; sleep 0.1", 6, 3),
        ("printf '\\377\\376'", 2, 0),
    ],
)
def test_what_it_writes_is_counted_and_does_not_stand_in_its_way(script, body, stdout, stderr):
    assert check(script(body)) == CheckResult(Verdict.GO, 0, "exit", stdout, stderr)


def test_a_flood_is_ended_in_time_and_costs_little(script, clock):
    memory, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()

    result = check(script("yes >&2 & exec yes"), timeout_ms=1000)

    assert (result.verdict, result.detail) == (Verdict.FAULT, "timeout")
    assert min(result.stdout_bytes, result.stderr_bytes) > 1_000_000
    assert clock() < 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 8 * 1024
    assert time.process_time() - cpu < 0.5


@pytest.mark.parametrize(
    "background", ["sleep 60", "sh -c 'trap \"\" PIPE; while :; do echo x || sleep 1; done'"]
)
def test_a_child_left_in_the_background_stays_and_nobody_waits_for_it(script, clock, tmp_path, background):
    result = check(script(f"{background} & echo $! >{tmp_path}/pid; exit 0"))

    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    assert (result.verdict, result.code, result.detail) == (Verdict.GO, 0, "exit")
    assert clock() < 5


def test_a_program_is_looked_up_at_every_check_and_its_links_followed(script, tmp_path):
    program, link = script("exit 0"), tmp_path / "link"
    link.symlink_to(program)

    verdicts = []
    for mode in (0o755, 0o644, 0o700):
        program.chmod(mode)
        verdicts += [check(program), check(link)]
    program.rename(tmp_path / "elsewhere")
    verdicts += [check(program), check(link)]

    assert verdicts == [GO, GO, MISSING, MISSING, GO, GO, MISSING, MISSING]


def test_what_is_no_executable_file_is_missing(script, tmp_path, clock):
    program = script("exit 0")
    os.mkfifo(tmp_path / "fifo", 0o777)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    places = [tmp_path, tmp_path / "fifo", tmp_path / "loop", program / "below", tmp_path / ("x" * 300)]

    assert [check(place) for place in places] == [MISSING] * len(places)
    assert clock() < 5


@pytest.mark.parametrize(
    ("shebang", "changed"),
    [
        ("", {}),
        ("#!/nonexistent/interpreter\n", {}),
        ("\x7fELF", {}),
        ("#!/bin/sh\n", {"argument": "x" * 1_000_000}),
        ("#!/bin/sh\n", {"argument": "a\0b"}),
        ("#!/bin/sh\n", {"environment": {"A=B": "c"}}),
    ],
)
def test_what_cannot_be_started_could_not_tell(script, shebang, changed):
    assert check(script("exit 0", shebang=shebang), **changed) == SPAWN_FAULT


def test_a_program_that_is_being_written_is_no_refusal(script, tmp_path):
    program = script("exit 0")
    with program.open("ab"):
        result = check(program)

    # Whether it starts all the same is the kernel's choice.
    assert result in (SPAWN_FAULT, GO)


@pytest.mark.parametrize("free", range(8))
def test_a_process_without_files_to_spare_could_not_tell_and_loses_none(script, free):
    program = script("exit 0")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    # Other tests of this process may have left some open.
    highest = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, limits[1]))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(free):
            os.close(taken.pop())
        result = check(program)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in taken:
            os.close(descriptor)

    # Two pipes, the empty stdin and the pipe that tells of a failed start.
    assert result == (GO if free >= 7 else SPAWN_FAULT)


def test_it_gets_one_argument_the_given_environment_an_empty_stdin_and_no_file_of_ours(script, tmp_path):
    program = script(
        f"exec >{tmp_path}/seen\n"
        'echo "$# $1"; echo "$A ${HOME-none}"; wc -c; ls /proc/$$/fd | tr "\\n" " "; echo\n'
        "cut -d' ' -f5,6 /proc/$$/stat; echo $$"
    )
    ours = fcntl.fcntl(0, fcntl.F_DUPFD, 100)
    os.set_inheritable(ours, True)

    result = check(program, argument="$(id) o/r#1 *", environment={**ENVIRONMENT, "A": "a b"})

    os.close(ours)
    counted, variables, stdin, files, group, pid = (tmp_path / "seen").read_text().splitlines()
    assert result == GO
    assert (counted, variables, stdin.strip()) == ("1 $(id) o/r#1 *", "a b none", "0")
    # Shells keep their script open as 10 or 255.
    assert set(files.split()) - {"10", "255"} == {"0", "1", "2"}
    assert group == f"{pid} {pid}"


def test_a_stop_that_was_asked_before_starts_nothing_and_looks_at_nothing(tmp_path):
    result = check(tmp_path / "no-such-program", stop=lambda: True)

    assert result == CheckResult(Verdict.ABORTED, None, "aborted")


@pytest.mark.parametrize(
    "body", ["exec sleep 60", "exec yes", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]
)
def test_a_stop_during_the_check_ends_it_and_is_no_fault(script, clock, body):
    asked: list[float] = []

    def stop() -> bool:
        asked.append(time.monotonic())
        return clock() > 0.5

    result = check(script(body), stop=stop)

    assert (result.verdict, result.code, result.detail) == (Verdict.ABORTED, None, "aborted")
    assert clock() < 2
    # At least every 50 ms on average, also on a machine that is busy.
    assert len(asked) >= (asked[-1] - asked[0]) / 0.05


def test_a_stop_that_fails_leaves_no_process_behind(script):
    def stop() -> bool:
        if children() - before:
            raise ConnectionError("gone")
        return False

    before = children()
    with pytest.raises(ConnectionError):
        check(script("exec sleep 60"), stop=stop)


def test_a_lost_exit_code_is_never_a_go(script):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        result = check(script("exit 0"))
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert result == CheckResult(Verdict.FAULT, None, "no-code")


def test_two_hundred_checks_in_many_threads_each_get_their_own_answer(script):
    programs = {code: script(f"echo x; exit {code}", name=f"check-{code}") for code in (0, 1, 2, 3)}
    codes = [*programs] * 50

    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(lambda code: check(programs[code]), codes))

    assert [result.code for result in results] == codes
    assert {result.stdout_bytes for result in results} == {2}


@pytest.mark.parametrize(
    ("text", "usable"),
    [
        *((text, True) for text in ("o/r#1", "a-b", " -x", "ü", "a\nb")),
        *((text, False) for text in ("", "-", "--help", "a\0", "a\ud800", None, 5)),
    ],
)
def test_a_target_is_text_that_is_no_option(text, usable):
    assert is_usable_argument(text) is usable
