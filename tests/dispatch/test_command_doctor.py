"""`manage.py doctor` as a process: its form, its exit codes, its order, under a broken configuration too."""

from __future__ import annotations

import json
import re
import socket
import time

import pytest

from dispatch.console.findings import Mark
from dispatch.console.findings_shown import SIGNS, WORDS, marks_for
from dispatch.doctor.examination import examine
from hosts import keys
from hosts.identity import host_id
from tests.dispatch.consolekit import NOBODY, Case, Console, own_server, run_all
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import everything
from tests.dispatch.test_command_switch import EVERYTHING_BROKEN

CANARY = "canary-0a1b2c"
# No engine, no provider, and a file of variables: nothing of it is wrong.
PLAIN = {"PI_BACKEND": "process"}
ORDER = ["fleet", "configuration", "host", "valkey", "waits", "triggers", "files", "retention"]
LINE = re.compile(rf"(\S+) ({'|'.join(ORDER)}): \S.*|    fix: \S.*")


@pytest.fixture
def console(tmp_path, valkey_url):
    return Console(tmp_path / "home", valkey_url, PLAIN)


def checks(said):
    return json.loads(said.out)["checks"]


def assert_form(out, marks):
    """One line a check, and right under what is not ok its fix."""
    lines = out.splitlines()
    assert all(LINE.fullmatch(line) for line in lines), out
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if not line.startswith(" "):
            assert after.startswith("    fix: ") is not line.startswith(marks[Mark.OK]), line


def test_warnings_are_no_failure_and_a_fleet_comes_first(console, valkey):
    appear(valkey, "alpha", skew_ms=300_000)
    appear(valkey, "bravo", skew_ms=-300_000)
    appear(valkey, "here", hostId=host_id(console.state))
    before = everything(valkey)

    said = run_all(
        console,
        {
            "lines": Case(words=["doctor"], code=0, says="", changes={"PYTHONIOENCODING": "ascii"}),
            "data": Case(words=["doctor", "--json"], code=0, says=""),
        },
    )

    assert [one.code for one in said.values()] == [0, 0], said
    assert everything(valkey) == before
    assert_form(said["lines"].out, WORDS)
    found = checks(said["data"])
    areas = [one["area"] for one in found]
    assert areas == sorted(areas, key=ORDER.index)
    assert set(areas) == set(ORDER)
    assert [one["text"] for one in found if one["check"] == "clock-skew"] == [
        "the clock of alpha is 300.0 s ahead of Valkey's",
        "the clock of bravo is 300.0 s behind Valkey's",
    ]
    assert found[0]["text"] == "3 hosts are live: alpha, bravo, here"
    assert re.fullmatch(r"\d+ checks: \d+ ok, \d+ warning, 0 failed\.\n", said["data"].err)


def test_everything_broken_is_told_line_by_line_and_no_secret_with_it(console, valkey):
    (console.home / ".env").write_text("PI_CONCURRENCY=none\nexport X=1\n")
    secrets = {"ANTHROPIC_API_KEY": CANARY, "DATABASE_URL": f"nonsense://{CANARY}", "WEBHOOK_SECRET": CANARY}

    console.state.chmod(0o500)
    nobody = {"VALKEY_URL": f"redis://u:{CANARY}@127.0.0.1:1", "PI_SCOPED_LIMITS_FILE": "", **secrets}

    said = run_all(
        console,
        {
            "lines": Case(words=["doctor"], code=1, says="", changes={**EVERYTHING_BROKEN, **secrets}),
            "data": Case(words=["doctor", "--json"], code=1, says="", humble=True, changes=nobody),
        },
    )

    assert [(one.code, one.is_plain) for one in said.values()] == [(1, True)] * 2, said
    assert CANARY not in repr(said)
    lines, data = said["lines"].out, "\n".join(one["text"] for one in checks(said["data"]))
    assert_form(lines, WORDS if WORDS[Mark.OK] in lines else SIGNS)
    for name in EVERYTHING_BROKEN.keys() - {"PI_LOGS_DIR"}:
        assert re.search(rf"configuration: {name} ", lines), name
    assert re.search(r"configuration: .*line 2: expected NAME=value", lines)
    assert "the server at" in lines
    for part in (
        f"Valkey at {NOBODY} does not answer (ConnectionError)",
        "PI_SCOPED_LIMITS_FILE is set to an empty value",
        "not looked at: the server does not answer",
        "cannot be used: this user may not read and write it",
    ):
        assert part in data


def test_nothing_that_hangs_is_waited_for_long(tmp_path):
    with own_server() as server, socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(server.home / "e"))
        engine.listen()
        server.freeze()
        began = time.monotonic()
        found = examine(
            {
                "PI_STATE_DIR": str(tmp_path / "state"),
                "PI_EGRESS": "0",
                "PI_WORKER_NAME": "here",
                "VALKEY_URL": server.url,
                "DOCKER_HOST": f"unix://{server.home}/e",
            },
            folder=tmp_path,
            engine_seconds=0.2,
        )
        took = time.monotonic() - began

    failed = {(one.area, one.check) for one in found if one.mark is Mark.FAILED}
    assert {("valkey", "reachable"), ("host", "engine")} <= failed
    assert took < 6


@pytest.mark.parametrize(
    ("variables", "check", "mark"),
    [
        pytest.param(
            {"VALKEY_URL": "embedded"}, "reachable", Mark.WARNING, id="an embedded server that rests"
        ),
        pytest.param(
            {"VALKEY_URL": "embedded", "PI_STATE_DIR": "/" + "x" * 120},
            "reachable",
            Mark.FAILED,
            id="an embedded server whose path is too long",
        ),
        pytest.param(
            {"PI_ENV_FILE": "/nothing"},
            "reachable",
            Mark.FAILED,
            id="nobody at the address that is the default",
        ),
    ],
)
def test_which_server_is_meant(tmp_path, variables, check, mark):
    environment = {
        "PI_STATE_DIR": str(tmp_path),
        "PI_EGRESS": "0",
        "VALKEY_URL": NOBODY,
        **PLAIN,
        **variables,
    }

    found = examine(environment, folder=tmp_path)

    assert [one.mark for one in found if (one.area, one.check) == ("valkey", check)] == [mark]
    assert all(one.area != "fleet" for one in found)


def test_a_check_that_fails_itself_hides_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("dispatch.doctor.waits.look", lambda known: 1 / 0)

    found = examine({"PI_STATE_DIR": str(tmp_path), "VALKEY_URL": NOBODY, **PLAIN}, folder=tmp_path)

    (broken,) = [one for one in found if one.area == "waits"]
    assert (broken.mark, broken.text) == (Mark.FAILED, "this check itself failed (ZeroDivisionError)")
    assert found[-1].area == "retention"


def test_a_registry_of_a_wrong_type_is_a_failure_of_the_fleet_alone(valkey, valkey_url, tmp_path):
    valkey.set(keys.HOSTS_LIVE, "text")

    found = examine(
        {"PI_STATE_DIR": str(tmp_path), "VALKEY_URL": valkey_url, **PLAIN, "PI_EGRESS": "0"}, folder=None
    )

    assert [(one.area, one.check) for one in found if one.mark is Mark.FAILED] == [("fleet", "registry")]


def test_an_output_that_prints_no_signs_gets_words():
    assert [marks_for(encoding) for encoding in ("utf-8", "latin-1", "no such one")] == [SIGNS, WORDS, WORDS]
