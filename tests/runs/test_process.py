from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pidispatch_site import log
from runs import exitline, labels
from runs.abort import Abort, AbortReason
from runs.container import ContainerSpec, Mount
from runs.exits import classify
from runs.outcome import Outcome, Reason, Verdict
from runs.process import ProcessBackend
from runs.processfiles import ProcessFiles
from runs.protocols import Backend, EngineAnsweredError, EngineNotFoundError
from runs.runner import Runner
from runs.watcher import Watcher

ROOT = Path(__file__).parents[2]
POINTER = "The context of this job (what started it, on which folder and commit) is in /job/event.json."


def until(holds: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def spec(tmp_path: Path) -> ContainerSpec:
    for name in ("job", "shop", "outbox"):
        (tmp_path / name).mkdir()
    (tmp_path / "job" / "prompt.md").write_text(f"{POINTER}\n\nSay hello in GREETING.md.")
    (tmp_path / "job" / "event.json").write_text('{"source":"manual","folder":"shop","sha":null}\n')
    return ContainerSpec(
        name="pi-job-x",
        image="any",
        environment={
            "PI_JOB_ID": "pi-job-x",
            "PI_MODEL": "m",
            "ANTHROPIC_API_KEY": "canary",
            "HOME": "/canary",
        },
        mounts=(
            Mount(source=str(tmp_path / "job"), target="/job", read_only=True),
            Mount(source=str(tmp_path / "shop"), target="/workspace", read_only=False),
            Mount(source=str(tmp_path / "outbox"), target="/outbox", read_only=False),
        ),
        labels={labels.HOST: "h", labels.BOOT: "h-1", labels.JOB: "x"},
        user="1001:1001",
    )


@pytest.fixture
def written(tmp_path: Path):
    def write(script: str) -> Path:
        path = tmp_path / "script.sh"
        path.write_text(textwrap.dedent(script))
        return path

    return write


@pytest.fixture
def backend_of(state_dir: Path) -> Iterator[Callable[..., ProcessBackend]]:
    made: list[ProcessBackend] = []

    def make(script: Path | None = None) -> ProcessBackend:
        options = {} if script is None else {"script": script}
        made.append(ProcessBackend(state_dir / "processes", poll_seconds=0.01, **options))
        return made[-1]

    yield make
    for facts in made[0].listing({}) if made else ():
        for backend in made:
            backend.remove(facts.id)


def finished(backend: Backend, container: str) -> int | None:
    until(lambda: backend.inspect(container).ended)
    return backend.inspect(container).exit_code


def test_the_scripted_agent_changes_the_folder_and_reports_like_a_runner(backend_of, spec, tmp_path: Path):
    backend = backend_of()
    container = backend.create(spec)
    assert backend.inspect("pi-job-x").status == "created"

    backend.start(container)

    assert backend.inspect(container).status == "running"
    assert finished(backend, container) == 0
    assert "Say hello in GREETING.md." in (tmp_path / "shop" / "GREETING.md").read_text()
    line = exitline.read(backend.tail(container))
    assert (line.turns, line.reason) == (2, "completed")
    assert line.tokens == {"input": 0, "output": 0, "total": 0, "cost": 0}
    assert backend.discard(container)
    with pytest.raises(EngineNotFoundError):
        backend.inspect(container)


def test_it_says_loudly_that_nothing_is_isolated(state_dir: Path, monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(log, "_current", log.EventLog(said))

    ProcessBackend(state_dir / "processes")

    assert json.loads(said.getvalue()) == {"event": "backend_not_isolated", "backend": "process"}


def test_the_script_sees_its_folders_and_named_values_and_no_key(
    backend_of, spec, written, tmp_path, monkeypatch
):
    monkeypatch.setenv("CANARY", "canary")
    backend = backend_of(written("env; pwd"))
    container = backend.create(spec)
    backend.start(container)
    finished(backend, container)

    *variables, folder = backend.tail(container).decode().splitlines()

    seen = dict(line.split("=", 1) for line in variables)
    for shells_own in ("PWD", "SHLVL", "_", "OLDPWD"):
        seen.pop(shells_own, None)
    assert seen == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PI_JOB_ID": "pi-job-x",
        "PI_MODEL": "m",
        "PI_DISPATCH_JOB": str(tmp_path / "job"),
        "PI_DISPATCH_WORKSPACE": str(tmp_path / "shop"),
        "PI_DISPATCH_OUTBOX": str(tmp_path / "outbox"),
    }
    assert folder == str(tmp_path / "shop")


def test_no_key_is_on_the_disk_or_among_the_arguments(backend_of, spec, written, state_dir: Path):
    backend = backend_of(written("sleep 30"))
    backend.start(backend.create(spec))

    stored = next(iter(ProcessFiles(state_dir / "processes").all()))
    pid_file = stored.folder / "pid"
    until(lambda: pid_file.exists() and pid_file.read_text())

    kept = b"".join(path.read_bytes() for path in state_dir.rglob("*") if path.is_file())
    pid = int((stored.folder / "pid").read_text())
    kept += Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    assert b"canary" not in kept


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("exit 7", 7, id="its own code"),
        pytest.param("kill -9 $$", 137, id="killed"),
        pytest.param("sleep 30 & exit 2", 2, id="left something running"),
    ],
)
def test_the_code_is_that_of_the_script(backend_of, spec, written, script: str, code: int):
    backend = backend_of(written(script))
    container = backend.create(spec)
    backend.start(container)

    assert finished(backend, container) == code


def test_what_a_script_left_running_ends_with_it(backend_of, spec, written, tmp_path: Path):
    backend = backend_of(written("sleep 30 & echo $! >left; exit 0"))
    container = backend.create(spec)
    backend.start(container)
    finished(backend, container)

    until(lambda: not is_running(int((tmp_path / "shop" / "left").read_text())))


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("trap 'exit 2' TERM; echo ready; while :; do sleep 0.05; done", 2, id="obeys"),
        pytest.param("trap '' TERM; echo ready; while :; do sleep 0.05; done", 137, id="ignores"),
    ],
)
def test_a_stop_asks_first_and_kills_after_the_grace(backend_of, spec, written, script: str, code: int):
    backend = backend_of(written(script))
    container = backend.create(spec)
    backend.start(container)
    until(lambda: b"ready" in backend.tail(container))

    assert backend.discard(container) is False
    backend.stop(container, grace_seconds=1)

    assert backend.inspect(container).exit_code == code
    backend.stop(container, grace_seconds=1)
    assert backend.discard(container)
    backend.stop(container, grace_seconds=1)
    assert backend.discard(container)


def test_the_agent_obeys_a_stop_and_says_so(backend_of, spec):
    backend = backend_of()
    container = backend.create(spec)
    backend.start(container)
    until(lambda: b'"tool":"read"' in backend.tail(container))

    backend.stop(container, grace_seconds=5)

    assert backend.inspect(container).exit_code == 2
    assert exitline.read(backend.tail(container)).reason == "aborted"


def test_a_name_is_taken_once(backend_of, spec):
    backend, second = backend_of(), backend_of()
    container = backend.create(spec)

    for one in (backend, second):
        with pytest.raises(EngineAnsweredError) as answer:
            one.create(spec)
        assert answer.value.conflict

    assert second.discard(container)
    assert second.create(spec) != container


def test_a_missing_folder_and_a_second_start_are_refused(backend_of, spec, written):
    backend = backend_of(written("exit 0"))
    absent = replace(spec, mounts=(*spec.mounts, Mount(source="/nowhere", target="/x", read_only=True)))
    with pytest.raises(EngineAnsweredError, match="mount-source-missing"):
        backend.create(absent)

    container = backend.create(spec)
    backend.start(container)
    with pytest.raises(EngineAnsweredError, match="not-startable"):
        backend.start(container)


def test_a_listing_selects_by_all_labels(backend_of, spec):
    backend = backend_of()
    backend.create(spec)
    backend.create(replace(spec, name="pi-job-y", labels={labels.HOST: "other"}))

    assert {facts.name for facts in backend.listing({})} == {"pi-job-x", "pi-job-y"}
    assert [facts.name for facts in backend.listing({labels.HOST: "h", labels.BOOT: "h-1"})] == ["pi-job-x"]
    assert backend.listing({labels.HOST: "h", labels.BOOT: "h-2"}) == []


def test_news_tell_of_an_end_and_a_closed_listener_stops(backend_of, spec, written):
    backend = backend_of(written("exit 0"))
    news, all_news = backend.changes({labels.HOST: "h"}), backend.changes({})
    others = backend.create(replace(spec, name="pi-job-y", labels={labels.HOST: "other"}))
    container = backend.create(spec)

    backend.start(others)
    assert next(iter(all_news)) == others
    backend.start(container)

    assert next(iter(news)) == container
    for listener in (news, all_news):
        listener.close()
        assert list(listener) == []


def test_the_output_is_followed_to_its_end_and_can_be_closed(backend_of, spec, written):
    backend = backend_of(written("echo one; sleep 0.2; echo two"))
    container = backend.create(spec)
    backend.start(container)
    output, closed = backend.follow(container), backend.follow(container)
    closed.close()

    followed = b"".join(iter(output.read, b""))

    assert followed == b"one\ntwo\n"
    assert closed.read() == b""


def test_the_tail_is_the_last_eight_kibibytes(backend_of, spec, written):
    backend = backend_of(written("i=0; while [ $i -lt 3000 ]; do echo line$i; i=$((i+1)); done"))
    container = backend.create(spec)
    backend.start(container)
    finished(backend, container)

    tail = backend.tail(container)

    assert len(tail) == 8192
    assert tail.endswith(b"line2999\n")


@pytest.mark.parametrize("call", ["inspect", "tail", "follow", "start"])
def test_an_unknown_one_is_answered_as_not_found(backend_of, call: str):
    with pytest.raises(EngineNotFoundError):
        getattr(backend_of(), call)("pi-job-unknown")


def test_images_and_networks_are_no_matter_of_this_backend(backend_of):
    backend = backend_of()

    assert backend.image("whatever:1") == backend.image("-")
    assert backend.networks({}) == []
    backend.remove_network("n")
    backend.remove("pi-job-unknown")


def orphaned(state_dir: Path, spec: ContainerSpec, script: Path) -> tuple[str, int]:
    """Have another process start one and be killed; the id and the number of what it left running."""
    program = """
        import sys
        from pathlib import Path
        from runs.container import ContainerSpec, Mount
        from runs.process import ProcessBackend
        backend = ProcessBackend(Path(sys.argv[1]), script=Path(sys.argv[2]))
        mount = Mount(source=sys.argv[3], target="/workspace", read_only=False)
        name = "pi-job-x"
        spec = ContainerSpec(name=name, image="i", environment={}, mounts=(mount,), labels={}, user=None)
        container = backend.create(spec)
        backend.start(container)
        print(container, flush=True)
        sys.stdin.read()
    """
    arguments = [str(state_dir / "processes"), str(script), spec.mounts[1].source]
    worker = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with worker:
        worker.stdout.readline()
        container = worker.stdout.readline().strip()
        pid_file = state_dir / "processes" / "pi-job-x" / "pid"
        until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        worker.kill()
    return container, int(pid_file.read_text())


def test_a_later_worker_finds_and_ends_what_a_killed_one_left_running(backend_of, spec, written, state_dir):
    container, pid = orphaned(state_dir, spec, written("trap '' TERM; while :; do sleep 0.1; done"))
    backend = backend_of()
    assert [(facts.id, facts.status) for facts in backend.listing({})] == [(container, "running")]
    assert not backend.discard(container)

    backend.remove(container)

    until(lambda: not is_running(pid))
    assert backend.listing({}) == []


def test_what_ended_by_itself_after_the_kill_has_no_code(
    backend_of, spec, written, state_dir, tmp_path: Path
):
    container, pid = orphaned(state_dir, spec, written("until [ -e go ]; do sleep 0.05; done; exit 3"))
    backend = backend_of()
    (tmp_path / "shop" / "go").touch()

    until(lambda: not is_running(pid))

    facts = backend.inspect(container)
    assert (facts.status, facts.exit_code) == ("exited", None)
    assert backend.discard(container)


def test_a_number_that_belongs_to_another_process_by_now_is_left_alone(backend_of, spec, state_dir: Path):
    backend = backend_of()
    container = backend.create(spec)
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as stranger:
        (state_dir / "processes" / "pi-job-x" / "pid").write_text(f"{stranger.pid}\n")

        assert backend.inspect(container).status == "exited"
        backend.remove(container)

        assert stranger.poll() is None
        stranger.send_signal(signal.SIGKILL)


def test_one_that_is_removed_before_its_shell_wrote_its_number_never_becomes_the_script(state_dir: Path):
    files = ProcessFiles(state_dir / "processes")
    stored = files.add("pi-job-x", {})
    files.remove(stored)

    # What `start` runs, arriving too late.
    from runs.process import _START

    late = subprocess.run(
        ["/bin/sh", "-c", _START, str(stored.folder), "/bin/sh", "-c", "echo ran"],
        capture_output=True,
        text=True,
    )

    assert late.returncode != 0
    assert late.stdout == ""


def test_what_a_kill_left_half_made_is_swept_later(state_dir: Path):
    folder = state_dir / "processes"
    ProcessFiles(folder)
    for name, age in ((".coming-a", 120), (".going-b", 120), (".coming-c", 0)):
        (folder / name).mkdir()
        os.utime(folder / name, (time.time() - age,) * 2)
    (folder / "pi-job-broken").mkdir()

    assert list(ProcessFiles(folder).all()) == []

    assert {path.name for path in folder.iterdir()} == {".coming-c", "pi-job-broken"}


@pytest.mark.parametrize(
    ("script", "abort", "verdict"),
    [
        pytest.param("exit 0", None, Verdict(outcome=Outcome.COMPLETED), id="done"),
        pytest.param("exit 1", None, Verdict(outcome=Outcome.FAILED, retry=True), id="infra"),
        pytest.param(
            "sleep 30",
            AbortReason.OPERATOR_CANCEL,
            Verdict(outcome=Outcome.POLICY, reason=Reason.OPERATOR_CANCEL),
            id="cancelled",
        ),
    ],
)
def test_the_runner_runs_it_like_a_container(backend_of, spec, written, tmp_path, script, abort, verdict):
    backend = backend_of(written(f"touch begun; {script}"))
    watcher = Watcher(backend, labels={labels.BOOT: "h-1"})
    asked = Abort()
    if abort is not None:
        threading.Thread(target=lambda: (until((tmp_path / "shop/begun").exists), asked.set(abort))).start()

    result = Runner(backend, watcher).run(spec, abort=asked)

    watcher.close()
    assert classify(result, exitline.read(result.tail)) == verdict
    assert result.gone
    assert backend.listing({}) == []


def test_many_at_once_do_not_mix(backend_of, spec, written):
    backend = backend_of(written('echo "$PI_JOB_ID"'))

    def run(number: int) -> None:
        name = f"pi-job-{number}"
        container = backend.create(replace(spec, name=name, environment={"PI_JOB_ID": name}))
        backend.start(container)
        codes[name] = finished(backend, container), backend.tail(container).decode()
        backend.remove(container)

    codes: dict[str, tuple[int | None, str]] = {}
    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert codes == {f"pi-job-{number}": (0, f"pi-job-{number}\n") for number in range(8)}
    assert backend.listing({}) == []
