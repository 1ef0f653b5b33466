"""The parts of the demo: its closed environment, its words, and the care with which a kept one is ended."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dispatch.demo import kept, sample, stage
from dispatch.demo.interrupts import ENDING, Interrupts
from dispatch.demo.telling import Teller, told_record
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError, OperationalError
from runs.files import FileFault
from runs.outcome import Outcome, Reason
from tests.harness.records import a_record


@pytest.fixture
def warnings():
    return []


@pytest.fixture
def here(monkeypatch, tmp_path, warnings):
    # A short place of its own: a Unix socket's name ends at some hundred characters.
    with tempfile.TemporaryDirectory(prefix="pd-") as short:
        monkeypatch.setattr(stage.tempfile, "tempdir", short)
        yield from set_up_at(tmp_path, warnings)


def set_up_at(tmp_path, warnings):
    operators = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "sk-secret",
        "PI_WORKER_NAME": "build-1",
        "PI_DAILY_CAP": "nonsense",
        "DATABASE_URL": "postgres://elsewhere/x",
        "DOCKER_HOST": "tcp://engine:2376",
    }
    with stage.set_up(operators, backend="process", image=None, warn=warnings.append) as here:
        yield here


@pytest.fixture(autouse=True)
def signals():
    """What a stage does to signals is the demo's, not the test run's."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_operators_settings_and_keys_stay_outside_and_the_rest_is_valid(here):
    config = conf.load(here.environment)

    assert "sk-secret" not in str(here.environment)
    assert (config.worker_name_declared, config.database_url, config.valkey_url) == (False, None, "embedded")
    assert config.state_dir == here.state
    assert here.environment["DOCKER_HOST"] == "tcp://engine:2376"


def test_the_file_of_variables_says_the_same_to_a_persons_own_commands(here):
    lines = dict(line.split("=", 1) for line in here.variables.read_text().splitlines())

    assert lines.items() <= here.environment.items()
    assert {"VALKEY_URL", "PI_STATE_DIR", "PI_BACKEND", "PI_EGRESS"} <= lines.keys()
    assert here.variables.stat().st_mode & 0o077 == 0


def test_the_sample_has_one_commit_and_its_diff_shows_new_files_too(here):
    sample.make_repository(here.repository, here.environment)
    (here.repository / "README.md").write_text("other\n")
    (here.repository / "new.txt").write_text("new\n")

    diff = sample.read_diff(here.repository, here.environment)

    assert "-# Sample" in diff
    assert "+other" in diff
    assert "+++ b/new.txt" in diff


def test_a_command_that_does_not_come_up_is_quoted(here):
    process = here.start("worker", "runworker", "--nonsense")

    with pytest.raises(OperationalError, match=r"(?s)The worker did not come up; it said:\n.*--nonsense"):
        here.until_logged("worker", "worker_started", process)


def test_what_was_started_is_ended_and_removed_with_the_stage(tmp_path, warnings):
    with stage.set_up({"PATH": "/usr/bin:/bin"}, backend="process", image=None, warn=warnings.append) as here:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        here.started.append(process)
        process.stdin.close()

    assert process.returncode is not None
    assert not here.folder.exists()
    assert warnings == []


def test_a_folder_that_is_no_kept_demo_is_refused_and_left_alone(tmp_path):
    (tmp_path / "kept.json").write_text(json.dumps({"v": 1, "pids": "all"}))

    with pytest.raises(ConfigurationError, match="is no folder of a demo that was kept"):
        kept.end(str(tmp_path))

    assert (tmp_path / "kept.json").exists()


def test_a_process_that_has_taken_over_a_number_is_not_ended(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=tmp_path
    ) as strangers:
        (folder / "kept.json").write_text(
            json.dumps({"v": 1, "pids": [strangers.pid], "environment": {"PI_JOB_IMAGE": "demo:1"}})
        )

        said = kept.end(str(folder))
        assert strangers.poll() is None
        strangers.communicate(b"\n")

    image = "The image stays for the next time; `docker rmi demo:1` removes it."
    assert said == f"The demo in {folder} was ended.\n{image}"
    assert not folder.exists()


def test_steps_are_numbered_and_say_the_time_passed():
    output = io.StringIO()
    teller = Teller(lambda text: output.write(f"{text}\n"), strong=str.upper)

    teller.step("first")
    teller.say("one\n\ntwo")
    teller.step("second")

    assert output.getvalue() == "\n1. FIRST   [0.0 s]\n   one\n\n   two\n\n2. SECOND   [0.0 s]\n"


def test_a_record_is_told_in_words():
    told = told_record(a_record(1, outcome=Outcome.POLICY, reason=Reason.OVER_BUDGET.value), Path("/logs"))

    assert "outcome    policy (over-budget: The cap on job starts was reached.)" in told
    assert "took       3 min 0 s" in told
    assert "exit code  0 (ended by itself)" in told
    assert told.endswith("file       /logs/local-00000001.json")


def test_a_record_that_cannot_be_read_is_said():
    assert told_record(FileFault.IO_ERROR, Path("/logs")) == "A record in /logs cannot be read: io-error"


def test_the_first_signal_interrupts_and_no_later_one_does():
    interrupts = Interrupts()
    interrupts.listen()

    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)

    for number in ENDING:
        os.kill(os.getpid(), number)


def test_what_is_held_is_done_before_it_is_interrupted():
    interrupts, done = Interrupts(), []
    interrupts.listen()

    def step():
        with interrupts.held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        step()

    assert done == ["whole"]


def test_a_signal_that_was_ignored_from_the_start_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    Interrupts().listen()

    os.kill(os.getpid(), signal.SIGHUP)
