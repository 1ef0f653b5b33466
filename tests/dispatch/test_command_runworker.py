"""`manage.py runworker` as a process: what it does not start on, and how it ends before it began."""

from __future__ import annotations

import json
import re
import signal
import time

import pytest

from tests.dispatch.consolekit import NOBODY, Case, Console, read_until, run_all

OPEN = "PI_EGRESS is on(?s:.*)Set PI_EGRESS=0"


@pytest.fixture(scope="module")
def console(tmp_path_factory, valkey_server_url):
    return Console(tmp_path_factory.mktemp("worker"), valkey_server_url, {"PI_BACKEND": "process"})


REFUSED = {
    "nothing said about the network": Case(words=[], changes={"PI_EGRESS": None}, code=2, says=f"^{OPEN}"),
    "everything wrong at once": Case(
        words=[],
        changes={"PI_EGRESS": None, "PI_CONCURRENCY": "0", "PI_MODEL": " ", "VALKEY_URL": "http://x"},
        code=2,
        says=f"(?s)VALKEY_URL.*PI_CONCURRENCY.*{OPEN}",
    ),
    "a state directory that is no directory": Case(
        words=[],
        changes={"PI_STATE_DIR": "/dev/null/x"},
        code=1,
        says="made private: Not a directory",
    ),
    "a state directory that others use": Case(
        words=[], changes={"PI_STATE_DIR": "/usr"}, code=1, says="open to other users and holds files already"
    ),
    "an embedded server for a fleet": Case(
        words=[],
        changes={"VALKEY_URL": "embedded"},
        code=2,
        says="VALKEY_URL is embedded and PI_WORKER_NAME",
    ),
    "an unknown option": Case(words=["--queue", "x"], code=2, says="unrecognized arguments: --queue"),
}


@pytest.fixture(scope="module")
def answers(console):
    return run_all(
        console,
        {name: Case(**{**vars(case), "words": ["runworker", *case.words]}) for name, case in REFUSED.items()},
    )


@pytest.mark.parametrize("name", REFUSED)
def test_it_does_not_start_on_what_it_cannot_work_with(answers, name):
    said, case = answers[name], REFUSED[name]

    assert said.code == case.code, said
    assert re.search(case.says, said.err), said.err
    assert "worker_started" not in said.out
    assert said.is_plain


def test_there_is_one_worker_a_state_directory_and_it_ends_by_a_signal(console, valkey):
    with console.running("runworker") as first:
        read_until(first.stdout, "worker_started")
        second = console.run("runworker")
        first.send_signal(signal.SIGTERM)
        rest = first.stdout.read().decode()
        code = first.wait(timeout=15)

    assert second.code == 1
    assert f"A worker of {console.state} is running already (process {first.pid})" in second.err
    assert code == 0
    assert json.loads(rest.splitlines()[-1]) == {"event": "worker_stopped", "jobs": 0, "host": "here"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_ends_at_once_while_it_waits_for_a_server_that_is_down(console, number):
    with console.running("runworker", VALKEY_URL=NOBODY) as process:
        said = read_until(process.stdout, "valkey_unreachable")
        began = time.monotonic()
        process.send_signal(number)
        said += process.stdout.read().decode()
        complaint = process.stderr.read().decode()
        code = process.wait(timeout=15)

    assert code == 0
    assert time.monotonic() - began < 5
    # Said once, however often it was tried.
    assert [json.loads(line)["event"] for line in said.splitlines()] == [
        "backend_not_isolated",
        "valkey_unreachable",
        "worker_stopped",
    ]
    assert complaint == ""
