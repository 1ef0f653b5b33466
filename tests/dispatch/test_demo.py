"""`manage.py demo` as a process: what a newcomer sees, and that nothing of it is left, however it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.dispatch.consolekit import MANAGE, ROOT

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent"}
KEY = "sk-canary-of-a-demo"


@dataclass
class Played:
    """One demo that was played to its end: what was seen, and what was left in its temporary folder."""

    code: int
    seen: str
    left: list[str]


class Place:
    """A folder for temporary files of which everything can be found again."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="pd-demo-"))
        # As root, the sample is given to another user, who must be able to reach it.
        self.path.chmod(0o755)

    def environment(self, changes):
        known = {name: os.environ[name] for name in ("PATH", "DOCKER_HOST") if name in os.environ}
        values = {
            **known,
            "HOME": str(self.path),
            "TMPDIR": str(self.path),
            "ANTHROPIC_API_KEY": KEY,
            # An operator's settings, which must not steer the demo.
            "PI_DAILY_CAP": "broken",
            "VALKEY_URL": "redis://127.0.0.1:1",
            **changes,
        }
        return {name: value for name, value in values.items() if value is not None}

    def left(self):
        """Name what is there still: files, and processes that speak of this folder."""
        return [path.name for path in self.path.iterdir()] + [
            f"{number} {_command_of(number)}" for number in self._processes()
        ]

    def close(self):
        """Remove it all, also after a test that failed half-way."""
        for number in self._processes():
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
        shutil.rmtree(self.path, ignore_errors=True)

    def _processes(self):
        return [process.name for process in Path("/proc").glob("[0-9]*") if self._is_of(process)]

    def _is_of(self, process):
        with suppress(OSError):
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            return str(self.path).encode() in said
        return False


def _command_of(number):
    with suppress(OSError):
        return Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return "gone"


def play(*options, at=None, send=None, to_group=False, **changes):
    """Play a demo; with `at`, send a signal when a line with this text appears."""
    place = Place()
    try:
        with subprocess.Popen(
            [*MANAGE, "demo", *options],
            cwd=ROOT,
            env=place.environment(changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            # A demo that hangs is a failure, not a test run that hangs.
            watchdog = threading.Timer(60, process.kill)
            watchdog.start()
            seen = ""
            for line in process.stdout:
                seen += line
                if at and at in line:
                    (os.killpg if to_group else os.kill)(process.pid, send)
                    at = None
            code = process.wait()
            watchdog.cancel()
        return Played(code, seen, place.left())
    finally:
        place.close()


@dataclass
class Kept(Played):
    """A demo that was kept: the page behind its link, its status and what was alive before it was ended."""

    page: str
    status: str
    alive: list[str]
    ended: str


def keep():
    """Keep a demo, use it, end it."""
    place = Place()

    def run(*words, **changes):
        environment = place.environment({**NO_ENGINE, **changes})
        return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)

    try:
        kept = run(*MANAGE, "demo", "--keep")
        seen = kept.stdout + kept.stderr
        folder = re.search(r"demo --end (\S+)", seen)[1]
        link = re.search(r"^   (http://127\.0\.0\.1:\d+/login/\S+)$", seen, re.MULTILINE)[1]
        with urllib.request.urlopen(link, timeout=10) as page:  # noqa: S310 - our own loopback
            shown = page.read().decode()
        status = run(*MANAGE, "status", PI_ENV_FILE=f"{folder}/env", VALKEY_URL=None).stdout
        alive = place.left()
        ended = run(*MANAGE, "demo", "--end", folder).stdout
        return Kept(kept.returncode, seen, place.left(), shown, status, alive, ended)
    finally:
        place.close()


SCENES = {
    "kept": keep,
    "process": lambda: play(**NO_ENGINE),
    "Ctrl-C while the job runs": lambda: play(
        at="running on", send=signal.SIGINT, to_group=True, **NO_ENGINE
    ),
    "SIGTERM while the worker starts": lambda: play(
        at="$ manage.py runworker", send=signal.SIGTERM, **NO_ENGINE
    ),
}
ENGINE_SCENES = {
    "container": play,
    "SIGTERM while the container runs": lambda: play(at="running on", send=signal.SIGTERM),
}


def play_all(scenes):
    with ThreadPoolExecutor(len(scenes)) as pool:
        return dict(zip(scenes, pool.map(lambda scene: scene(), scenes.values()), strict=True))


@pytest.fixture(scope="module")
def played():
    return play_all(SCENES)


@pytest.fixture(scope="module")
def played_in_containers(engine):
    return play_all(ENGINE_SCENES)


def assert_whole(demo):
    assert demo.code == 0, demo.seen
    headings = re.findall(r"^(\d)\. .*   \[\d+\.\d s\]$", demo.seen, re.MULTILINE)
    assert headings == ["1", "2", "3", "4", "5"]
    assert re.search(r"^ +\d+\.\d s  running on ", demo.seen, re.MULTILINE)
    assert re.search(r"^ +\d+\.\d s  completed$", demo.seen, re.MULTILINE)
    assert "\n+pi-dispatch was here.\n" in demo.seen
    assert re.search(r"^   outcome +completed$", demo.seen, re.MULTILINE)
    assert "Nothing is left running" in demo.seen
    assert "ANTHROPIC_API_KEY=…" in demo.seen
    assert KEY not in demo.seen


def test_without_an_engine_the_job_runs_as_a_process_and_that_is_said_aloud(played):
    demo = played["process"]

    assert_whole(demo)
    assert "No container engine answers to this account. Nothing is isolated" in demo.seen
    assert "!" * 60 in demo.seen
    assert demo.left == []


@pytest.mark.docker
def test_with_an_engine_the_job_runs_in_a_container(played_in_containers):
    demo = played_in_containers["container"]

    assert_whole(demo)
    assert re.search(r"^   image +sha256:[0-9a-f]{64}$", demo.seen, re.MULTILINE)
    assert "Nothing is isolated" not in demo.seen
    assert demo.left == []


@pytest.mark.parametrize("scene", [name for name in SCENES if "while" in name])
def test_an_interrupted_demo_says_so_and_leaves_nothing(played, scene):
    demo = played[scene]

    assert demo.code == 1
    assert demo.seen.endswith("The demo was interrupted; nothing of it is left running.\n")
    assert "Traceback" not in demo.seen
    assert demo.left == []


@pytest.mark.docker
def test_an_interrupted_demo_leaves_no_container(played_in_containers, engine):
    demo = played_in_containers["SIGTERM while the container runs"]
    folder = re.search(r"run (/\S+)/sample", demo.seen)[1]

    assert demo.code == 1
    assert demo.left == []
    assert [
        container.name
        for container in engine.containers.list(all=True, ignore_removed=True)
        if any(mount.get("Source", "").startswith(folder) for mount in container.attrs["Mounts"])
    ] == []


def test_a_kept_demo_runs_on_with_an_admin_to_enter_until_it_is_ended(played):
    kept = played["kept"]

    assert kept.code == 0, kept.seen
    assert "<form" in kept.page
    assert '"pausedState": false' in kept.status
    # The folder; worker, admin (two processes) and Valkey.
    assert len(kept.alive) >= 4
    assert re.fullmatch(
        r"The demo in \S+ was ended\.\n(The image stays .* `docker rmi \S+` .*\n)?", kept.ended
    )
    assert kept.left == []
