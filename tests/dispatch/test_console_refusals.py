"""What commands that switch or look cannot do, as processes: said in words, no server started."""

from __future__ import annotations

import re

import pytest

from tests.dispatch.consolekit import NOBODY, Case, Console, run_all
from tests.dispatch.queuekit import QUEUE

THERE = "pi-jobs@there"
SILENT = f"(?sm)^Valkey at {NOBODY} does not answer"
EMBEDDED = {
    "changes": {"VALKEY_URL": "embedded", "PI_WORKER_NAME": None},
    "code": 1,
    "says": "^The embedded Valkey server of .* is not running",
}
REFUSED = {
    "pause: nobody there": Case(
        words=["pause"], code=1, says=f"{SILENT}.*\nNot confirmed as paused: the whole fleet"
    ),
    "resume: nobody there": Case(
        words=["resume", QUEUE, THERE], code=1, says=f"Not confirmed as resumed: {QUEUE}, {THERE}\\."
    ),
    "status: nobody there": Case(words=["status"], code=1, says=SILENT),
    "queue: nobody there": Case(words=["queue"], code=1, says=SILENT),
    "why: nobody there": Case(words=["why", "local-1"], code=1, says=SILENT),
    "pause: embedded one not running": Case(words=["pause"], **EMBEDDED),
    "status: embedded one not running": Case(words=["status"], **EMBEDDED),
    "why: embedded one not running": Case(words=["why", "local-1"], **EMBEDDED),
    "no address": Case(
        words=["pause"],
        changes={"VALKEY_URL": "127.0.0.1:6379,password=hidden"},
        code=2,
        says=r"^VALKEY_URL is set to a value that is not shown; expected redis://HOST",
    ),
    "the file that names the server is not there": Case(
        words=["pause"],
        changes={"VALKEY_URL": None, "PI_ENV_FILE": "/nothing"},
        code=2,
        says="(?s)/nothing.*set VALKEY_URL to say which server is meant",
    ),
    **{
        f"{command}: no queue": Case(
            words=[command, "jobs", QUEUE], code=2, says="^'jobs' is no queue; allowed are pi-jobs"
        )
        for command in ("pause", "queue")
    },
    "no duration": Case(words=["pause", "--for", "1y"], code=2, says="argument --for: '1y' is no duration"),
    **{
        f"--limit {text}": Case(
            words=["queue", "--limit", text], code=2, says=f"{text!r} is no limit; expected"
        )
        for text in ("0", "\u0664")
    },
    "no job named": Case(words=["why"], code=2, says="arguments are required: JOB"),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    return run_all(Console(tmp_path_factory.mktemp("refusals")), REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_said_in_words(refusals, name):
    said, case = refusals[name], REFUSED[name]

    assert (said.code, said.out) == (case.code, ""), said
    assert re.search(case.says, said.err), said.err
    assert said.is_plain
    assert "hidden" not in said.err


def test_looking_starts_no_server(refusals, tmp_path_factory):
    assert refusals["status: embedded one not running"].code == 1
    assert not list(tmp_path_factory.getbasetemp().glob("refusals*/state/valkey/*"))
