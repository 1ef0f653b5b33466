"""`manage.py pause`, `resume`, `status` as processes: durable, never half said, whatever else is broken."""

from __future__ import annotations

import json
import re

import pytest

from hosts import keys, switches
from tests.dispatch.consolekit import NOBODY, Case, Console, own_server, run_all
from tests.dispatch.queuekit import QUEUE, Host, now_ms

THERE = "pi-jobs@there"

EVERYTHING_BROKEN = {
    "PI_CONCURRENCY": "none",
    "PI_WORKER_NAME": "two words",
    "PI_EGRESS": "maybe",
    "PI_BACKEND": "vm",
    "PI_LOGS_DIR": "\x7f",
    "PI_GLOBAL_PI_DIR": "/nothing",
    "DATABASE_URL": "nonsense",
    "PI_WEB_ORIGINS": "nonsense",
    "PI_FORWARD_ENV": "1,2",
}


@pytest.fixture
def console(tmp_path, valkey_url):
    return Console(tmp_path / "home", valkey_url)


def status(console, **changes):
    said = console.run("status", **changes)
    assert said.code == 0, said.err
    assert said.out.count("\n") == 1
    return json.loads(said.out)


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    return run_all(Console(tmp_path_factory.mktemp("switch")), REFUSED)


EMBEDDED = {"VALKEY_URL": "embedded", "PI_WORKER_NAME": None}
REFUSED = {
    "pause: nobody there": Case(
        words=["pause"],
        code=1,
        says=f"(?s)^Valkey at {NOBODY} does not answer.*\nNot confirmed as paused: the whole fleet",
    ),
    "resume: nobody there": Case(
        words=["resume", QUEUE, THERE], code=1, says=f"(?s)Not confirmed as resumed: {QUEUE}, {THERE}\\."
    ),
    "status: nobody there": Case(words=["status"], code=1, says=f"^Valkey at {NOBODY} does not answer"),
    "pause: embedded one not running": Case(
        words=["pause"], changes=EMBEDDED, code=1, says="^The embedded Valkey server of .* is not running"
    ),
    "status: embedded one not running": Case(
        words=["status"], changes=EMBEDDED, code=1, says="^The embedded Valkey server of .* is not running"
    ),
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
    "no queue": Case(words=["pause", "jobs", QUEUE], code=2, says="^'jobs' is no queue; allowed are pi-jobs"),
    "no duration": Case(words=["pause", "--for", "1y"], code=2, says="argument --for: '1y' is no duration"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_switched_is_said_in_words(refusals, name):
    said, case = refusals[name], REFUSED[name]

    assert (said.code, said.out) == (case.code, ""), said
    assert re.search(case.says, said.err), said.err
    assert said.is_plain
    assert "hidden" not in said.err


def test_looking_starts_no_server(refusals, tmp_path_factory):
    assert refusals["status: embedded one not running"].code == 1
    assert not list(tmp_path_factory.getbasetemp().glob("switch*/state/valkey/*"))


def test_stopping_works_when_everything_else_is_broken(console, valkey):
    file = console.home / "broken.env"
    file.write_bytes(b"no line at all\n\xff\xfe\nPI_MAX_TURNS='quoted'\nVALKEY_URL=" + console.url.encode())
    broken = {**EVERYTHING_BROKEN, "PI_ENV_FILE": str(file), "VALKEY_URL": None}
    Host(valkey).enqueue("local-1")

    paused = console.run("pause", "--for", "2h", "--reason", b"it burns\nin the \xff kitchen", **broken)
    shown = status(console, **broken)
    resumed = console.run("resume", **broken)

    assert (paused.code, resumed.code) == (0, 0), (paused, resumed)
    assert re.fullmatch(
        rf"Paused the whole fleet \(pi-jobs\) on {console.url}, until \d{{4}}-.* UTC\.\n", paused.out
    )
    assert list(shown) == ["pausedState", "waiting", "active", "paused", "delayed", "failed", "pause"]
    assert (shown["waiting"], shown["paused"]) == (0, 1)
    assert shown["pause"]["reason"] == "it burns in the ? kitchen"
    assert shown["pause"]["until"] - shown["pause"]["since"] == 2 * 3600 * 1000
    assert resumed.out == f"Resumed the whole fleet on {console.url}; queues: pi-jobs.\n"


def test_one_queue_of_two_is_paused_and_status_says_which(console, valkey):
    Host(valkey).enqueue("local-1")
    Host(valkey, queue=THERE).enqueue("local-2", "local-3")

    console.run("pause", THERE)

    assert list(status(console).items())[:7] == [
        ("pausedState", False),
        ("pausedPartial", True),
        ("pausedQueues", [THERE]),
        ("waiting", 1),
        ("active", 0),
        ("paused", 2),
        ("delayed", 0),
    ]


def test_a_queue_cannot_be_resumed_under_a_pause_of_the_fleet(console, valkey):
    console.run("pause", QUEUE)
    console.run("pause")

    said = console.run("resume", QUEUE)

    assert (said.code, said.out) == (1, "")
    assert f"Still paused on {console.url}: {QUEUE}, because the whole fleet is paused." in said.err
    assert switches.read(valkey, [QUEUE]).queues[QUEUE] is None


def test_resuming_everything_reaches_a_queue_whose_host_is_down(console, valkey):
    # It has paused, it is gone, and nothing but Valkey knows of its queue (the pause of a host that was down
    # used to stay).
    switches.pause(valkey, [THERE], by="somebody", reason="")

    said = console.run("resume")

    assert said.out == f"Resumed {THERE} on {console.url}; queues: {QUEUE}, {THERE}.\n"
    assert status(console)["pausedState"] is False


def test_a_name_that_was_never_heard_of_is_paused_and_asked_about(console, valkey):
    said = console.run("pause", "pi-jobs@tpyo")

    assert (said.code, said.out) == (0, f"Paused pi-jobs@tpyo on {console.url}, until resumed.\n")
    assert said.err == "pi-jobs@tpyo was not known here before: is the name right?\n"


def test_a_pause_ends_by_the_servers_clock_alone(console, valkey):
    console.run("pause", "--for", "1d")
    assert status(console)["pausedState"] is True

    # The host's clock has not moved.
    valkey.hset(keys.pause(keys.FLEET), "until", now_ms(valkey))

    assert status(console) == {
        "pausedState": False,
        "waiting": 0,
        "active": 0,
        "paused": 0,
        "delayed": 0,
        "failed": 0,
    }


@pytest.fixture
def server():
    with own_server() as server:
        yield server


def test_a_pause_outlives_the_server_and_holds_a_worker_that_comes_later(tmp_path, server):
    console = Console(tmp_path / "home", server.url)

    console.run("pause", "--reason", "upgrade")
    server.kill()
    server.start()
    shown = status(console)
    with server.client() as client:
        host = Host(client)
        host.enqueue("local-1")
        popped = host.popper.pop()

    assert (shown["pausedState"], shown["pause"]["reason"]) == (True, "upgrade")
    assert type(popped).__name__ == "Paused"


def test_a_server_that_refuses_is_quoted_and_nothing_is_confirmed(console, valkey):
    # The script fails half-way: after the pause, at the list of queues.
    valkey.set(keys.QUEUES_KNOWN, "somebody else's")

    said = console.run("pause", QUEUE)

    assert (said.code, said.out) == (1, "")
    assert "refused what was asked of it (ResponseError: " in said.err
    assert f"Not confirmed as paused: {QUEUE}." in said.err
    assert said.is_plain


def test_a_wrong_password_is_said_and_not_shown(console, valkey):
    try:
        valkey.execute_command("ACL", "SETUSER", "guarded", "on", ">right", "~*", "+@all")
        url = console.url.replace("unix://", "unix://guarded:hidden@")
        said = console.run("status", VALKEY_URL=url)
    finally:
        valkey.execute_command("ACL", "DELUSER", "guarded")

    assert (said.code, said.out) == (2, "")
    assert "refused the user or password in VALKEY_URL" in said.err
    assert "hidden" not in said.err
