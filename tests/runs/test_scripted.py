from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runs import exitline
from runs.scripted import AGENT

POINTER = "The context of this job (what started it, on which folder and commit) is in /job/event.json."
# `sh` is one of the others on most systems; each program once.
SHELLS = {
    os.path.realpath(shutil.which(shell[0])): pytest.param(shell, id=" ".join(shell))
    for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"], ["sh"])
    if shutil.which(shell[0])
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A prompt, what is in the folder, and what the agent makes of it: file to text (None: no such file)."""

    task: str
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str | None]
    links: tuple[str, ...] = ("link.md",)
    ends: tuple[int, str] = (0, "completed")
    prompt: str = POINTER + "\n\n{}"


def noted(text: str) -> str:
    return f"{text}\n\n(Noted by the scripted agent of pi-dispatch in shop at 0123456; no model was asked.)\n"


CASES = {
    "a named file": Case(
        task="Say hello in docs/GREETING.md. Thank you!",
        after={"docs/GREETING.md": noted("Say hello in docs/GREETING.md. Thank you!"), "NOTES.md": None},
    ),
    "quoted words": Case(
        task='Write "Hello, world" into hello.txt.\nSecond line "no"', after={"hello.txt": "Hello, world\n"}
    ),
    "no file": Case(task="\n  Tidy up.  \nmore\n", after={"NOTES.md": noted("Tidy up.")}),
    "below what is there": Case(
        task='Put "B" into a.md', before={"a.md": "A"}, after={"a.md": "A\n\nB\n", "NOTES.md": None}
    ),
    "a flow's prompt": Case(
        prompt=f'Use the skill "fix" for this job.\n{POINTER}\n\n{{}}', task='"C"', after={"NOTES.md": "C\n"}
    ),
    "a command": Case(prompt="{}", task="/deploy now", after={"NOTES.md": noted("/deploy now")}),
    "nothing to do": Case(task="", after={"NOTES.md": noted("Nothing was asked.")}),
    "words that are no files": Case(
        task='"D" e.g. at https://example.com/x or in README, i.e. v1.2.', after={"NOTES.md": "D\n"}
    ),
    "places it may not write": Case(
        task='"E" to /etc/x.md, ../x.md, a/../x.md, .git/x.md, link.md, way/x.md, dir.md or ok.md',
        before={"dir.md/x": ""},
        after={
            "ok.md": "E\n",
            "../x.md": None,
            ".git/x.md": None,
            "../outside.md": None,
            "../way/x.md": None,
        },
    ),
    "shell in the task": Case(
        task="$(touch PWNED) `touch PWNED` ; touch PWNED; * \\n %s 'x",
        after={"PWNED": None, "NOTES.md": noted("$(touch PWNED) `touch PWNED` ; touch PWNED; * \\n %s 'x")},
    ),
    "quotes with shell": Case(
        task='"$(touch PWNED) \\n %s"', after={"PWNED": None, "NOTES.md": "$(touch PWNED) \\n %s\n"}
    ),
    "nothing that may be written": Case(
        task="F", links=("NOTES.md",), after={"../outside.md": None}, ends=(2, "workspace-not-writable")
    ),
}


@dataclass
class Job:
    """One job's folders and the agent that works on them."""

    root: Path
    shell: list[str]
    process: subprocess.Popen[bytes] | None = None

    def prepare(self, prompt: str, links: tuple[str, ...] = ()) -> Job:
        for name in ("job", "shop", "shop/.git", "outbox", "way"):
            (self.root / name).mkdir(parents=True)
        for link in links:
            (self.root / "shop" / link).symlink_to(self.root / "outside.md")
        (self.root / "shop" / "way").symlink_to(self.root / "way")
        (self.root / "job" / "prompt.md").write_text(prompt)
        event = '{"source":"manual","folder":"shop","sha":"0123456789abcdef0123456789abcdef01234567"}\n'
        (self.root / "job" / "event.json").write_text(event)
        return self

    def start(self, **variables: str) -> Job:
        places = {"JOB": "job", "WORKSPACE": "shop", "OUTBOX": "outbox"}
        folders = {f"PI_DISPATCH_{name}": str(self.root / folder) for name, folder in places.items()}
        self.process = subprocess.Popen(
            [*self.shell, str(AGENT)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "PI_JOB_ID": 'pi-job-x"\n', **folders, **variables},
            start_new_session=True,
        )
        return self

    def end(self) -> tuple[int, exitline.ExitLine, str]:
        output, _ = self.process.communicate(timeout=20)
        return self.process.returncode, exitline.read(output), output.decode()


@pytest.fixture(scope="module", params=SHELLS.values())
def shell(request) -> list[str]:
    return request.param


@pytest.fixture(scope="module")
def jobs(shell, tmp_path_factory) -> Iterator[dict[str, Job]]:
    """All cases at once: each takes a second of the agent's pretended work."""
    started = {}
    for name, case in CASES.items():
        job = Job(tmp_path_factory.mktemp("case"), shell).prepare(case.prompt.format(case.task), case.links)
        for file, text in case.before.items():
            path = job.root / "shop" / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        started[name] = job.start()
    yield started
    for job in started.values():
        job.process.wait(timeout=20)


@pytest.mark.parametrize("name", CASES)
def test_the_agent_makes_the_same_small_change_of_a_task(jobs, name: str):
    job, case = jobs[name], CASES[name]

    code, line, output = job.end()

    assert (code, line.reason) == case.ends
    for file, text in case.after.items():
        path = job.root / "shop" / file
        assert (path.read_text() if path.exists() else None) == text
    assert '"jobId":"pi-job-x"' in output
    assert all(line.startswith('{"event":"') for line in output.splitlines() if line)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_obeys_a_signal_at_once_and_says_that_it_was_aborted(shell, tmp_path, number):
    job = Job(tmp_path, shell).prepare("x").start()
    while b'"read"' not in job.process.stdout.readline():
        pass

    began = time.monotonic()
    job.process.send_signal(number)
    code, line, _ = job.end()

    assert (code, line.reason, line.turns) == (2, "aborted", 1)
    assert time.monotonic() - began < 0.9
    assert not (tmp_path / "shop" / "NOTES.md").exists()


def test_a_task_that_says_so_takes_its_time_and_can_be_stopped_meanwhile(shell, tmp_path):
    job = Job(tmp_path, shell).prepare("Fix it. Take 20 minutes, please.").start()
    children = Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children")
    deadline = time.monotonic() + 20
    while not (sleepers := [one for one in children.read_text().split() if _command(one) == "sleep 60"]):
        assert time.monotonic() < deadline, "it never sleeps for a minute"
        time.sleep(0.02)

    job.process.send_signal(signal.SIGTERM)
    code, line, _ = job.end()

    assert (code, line.reason, line.turns) == (2, "aborted", 1)
    assert [one for one in sleepers if _command(one) == "sleep 60"] == []
    assert not (tmp_path / "shop" / "NOTES.md").exists()


def _command(process: str) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return ""


def test_it_ends_itself_when_its_deadline_has_passed(shell, tmp_path: Path):
    code, line, _ = Job(tmp_path, shell).prepare("x").start(PI_JOB_DEADLINE=str(int(time.time()))).end()

    assert (code, line.reason, line.turns) == (2, "deadline", 0)


def test_without_its_folders_it_refuses(shell, tmp_path: Path):
    job = Job(tmp_path, shell).prepare("x")
    (tmp_path / "job" / "prompt.md").unlink()
    code, line, _ = job.start().end()
    assert (code, line.reason) == (2, "job-input-missing")

    (tmp_path / "job" / "prompt.md").touch()
    code, line, _ = job.start(PI_DISPATCH_WORKSPACE=str(tmp_path / "absent")).end()
    assert (code, line.reason) == (2, "workspace-not-writable")
