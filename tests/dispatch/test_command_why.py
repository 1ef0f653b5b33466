"""`manage.py why JOB` as a process: a few lines, or data, whatever else is broken; nothing secret."""

from __future__ import annotations

import json
import re

import pytest

from dispatch.jobs import local_job
from hosts import switches
from tests.dispatch.consolekit import Console
from tests.dispatch.queuekit import QUEUE, Host, everything
from tests.dispatch.test_command_switch import EVERYTHING_BROKEN

SECRET = "canary"


@pytest.fixture
def console(tmp_path, valkey_url):
    return Console(tmp_path / "home", valkey_url)


@pytest.fixture
def host(valkey):
    host = Host(valkey)
    host.beats.register()
    return host


def test_a_job_of_which_nothing_is_known_is_an_error(console, host):
    said = console.run("why", "local-\x1b[31m1", "--json")

    assert (said.code, said.out) == (1, "")
    assert "Job local- [31m1 is not known there: it never was" in said.err
    assert said.is_plain


def test_a_sleeping_job_is_explained_with_everything_else_broken(console, host, valkey):
    job = local_job(f"/srv/{SECRET}", task=f"say {SECRET}")
    host.producer.enqueue(QUEUE, "repeat:nightly:1", job, scope_hash="abcd")
    claimed = host.claim()
    host.steps.put_off(claimed, until_ms=claimed.now_ms + 3_600_000, reason="pause-window", scope_hash="abcd")
    before = everything(valkey)

    said = console.run("why", "repeat:nightly:1", **EVERYTHING_BROKEN)
    data = console.run("why", "repeat_3anightly_3a1", "--json", **EVERYTHING_BROKEN)

    assert (said.code, data.code) == (0, 0), (said, data)
    assert said.out.startswith(
        "Job repeat:nightly:1 is deferred on pi-jobs: pause-window\n"
        "A pause window holds.\nIt wakes when the window ends"
    )
    assert re.search(r"\n  until    \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, in (1 h|59 min \d+ s)\n", said.out)
    assert said.err == f"Valkey: {console.url}\n"
    found = json.loads(data.out)
    assert (found["job"], found["until"]) == ("repeat:nightly:1", claimed.now_ms + 3_600_000)
    assert SECRET not in said.out + said.err + data.out + data.err
    assert everything(valkey) == before


def test_what_others_wrote_into_a_pause_cannot_act_on_a_terminal(console, host, valkey):
    host.enqueue("local-1")
    switches.pause(valkey, [QUEUE], by="me", reason="lunch\x1b[2J\nJob local-1 runs")

    said = console.run("why", "local-1")

    assert "is paused by me: lunch [2J Job local-1 runs.\n" in said.out
    assert "\x1b" not in said.out
