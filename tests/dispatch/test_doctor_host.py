"""Checks of this machine and its files: each judged as the worker would judge it, and nothing is changed."""

from __future__ import annotations

import tempfile

import pytest

from dispatch.console.findings import Mark
from dispatch.doctor import configuration, credential, files, host, retention, state_directory, waits

OK, WARNING, FAILED = Mark.OK, Mark.WARNING, Mark.FAILED
CANARY = "canary-0a1b2c"


def known(tmp_path, **variables):
    return configuration.read(
        {"PI_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path), "PI_EGRESS": "0", **variables}
    )


@pytest.mark.parametrize(
    ("version", "mark"),
    [((3, 10, 9), FAILED), ((3, 11, 0), OK), ((3, 13, 5), OK), ((3, 14, 0), WARNING)],
)
def test_the_version_of_python(version, mark):
    assert host.python(version).mark is mark


def test_the_file_of_variables(tmp_path):
    def mark(environment, folder=tmp_path):
        return host.env_file(environment, folder).mark

    assert mark({}) is WARNING
    (tmp_path / ".env").write_text("")
    (tmp_path / ".env").chmod(0o644)
    assert mark({}) is WARNING
    (tmp_path / ".env").chmod(0o600)
    assert mark({}) is OK
    assert mark({"PI_ENV_FILE": str(tmp_path / ".env")}, None) is OK
    assert mark({"PI_ENV_FILE": "/nothing"}) is WARNING
    assert mark({}, None) is WARNING


def test_the_state_directory(tmp_path):
    def found():
        return state_directory.look(known(tmp_path))

    state = tmp_path / "state"
    assert (found().mark, state.exists()) == (OK, False)
    state.mkdir(mode=0o755)
    assert found().mark is OK
    (state / "file").touch()
    assert found().mark is FAILED
    assert found().fix.endswith(f"chmod 700 {state}")
    state.chmod(0o700)
    assert found().mark is OK
    assert state_directory.look(known(tmp_path, PI_STATE_DIR=str(state / "file"))).mark is FAILED
    assert state_directory.look(known(tmp_path, PI_STATE_DIR=str(state / "file" / "below"))).mark is FAILED
    assert state_directory.look(known(tmp_path, PI_STATE_DIR="relative")).mark is WARNING
    assert list(state.iterdir()) == [state / "file"]


@pytest.mark.parametrize(
    ("variables", "mark", "text"),
    [
        ({"ANTHROPIC_API_KEY": CANARY}, OK, "provider 'anthropic' has a credential"),
        ({}, FAILED, "provider 'anthropic' has no usable credential (no-credential)"),
        ({"PI_PROVIDER": "nobody"}, FAILED, "provider 'nobody' has no usable credential (unknown-provider)"),
        ({"PI_PROVIDER": "a b"}, WARNING, "not looked at: PI_PROVIDER cannot be used as it stands"),
        ({"PI_BACKEND": "process"}, OK, "PI_BACKEND=process needs no provider's credential"),
    ],
)
def test_the_credential(tmp_path, variables, mark, text):
    found = credential.look(known(tmp_path, **variables))

    assert (found.mark, found.text) == (mark, text)
    assert CANARY not in repr(found)


def test_the_credential_is_that_of_the_provider_in_the_settings_file(tmp_path):
    (tmp_path / "settings.json").write_text('{"provider": "openai"}')
    variables = {"PI_SETTINGS_FILE": str(tmp_path / "settings.json"), "ANTHROPIC_API_KEY": CANARY}

    assert "'openai' has no usable credential" in credential.look(known(tmp_path, **variables)).text
    (tmp_path / "settings.json").write_text("no JSON")
    assert credential.look(known(tmp_path, **variables)).mark is OK


def test_a_login_that_cannot_be_read_is_told_as_such(tmp_path):
    (tmp_path / "auth.json").mkdir()

    found = credential.look(known(tmp_path, PI_CODING_AGENT_DIR=str(tmp_path)))

    assert (found.mark, "cannot be told (auth-file-unreadable)" in found.text) == (FAILED, True)


def test_the_scripts_that_jobs_wait_for(tmp_path):
    for name, mode in (("good", 0o755), ("plain", 0o644)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    table = {"good": "good", "plain": "plain", "none": "none", "folder": "."}
    profiles = ",".join(f"{name}:{tmp_path / path}" for name, path in table.items())

    found = list(waits.look(known(tmp_path, PI_WAIT_PROFILES=profiles)))

    assert [(one.mark, one.text.partition(f" {tmp_path}")[2]) for one in found] == [
        (FAILED, "/plain is not executable for this user"),
        (FAILED, "/none cannot be read (No such file or directory)"),
        (FAILED, " is no file"),
    ]
    assert [one.mark for one in waits.look(known(tmp_path, PI_WAIT_PROFILES=f"a:{tmp_path / 'good'}"))] == [
        OK
    ]
    assert [one.mark for one in waits.look(known(tmp_path))] == [OK]
    assert [one.mark for one in waits.look(known(tmp_path, PI_WAIT_PROFILES="ci"))] == [WARNING]


def test_files_that_nobody_configured(tmp_path):
    def marks(**variables):
        return [(one.check, one.mark) for one in files.look(known(tmp_path, **variables), tmp_path)]

    assert marks() == [("windows", OK), ("limits", OK), ("settings", OK)]
    (tmp_path / "scoped-limits.json").write_text("{}")
    assert marks() == [("windows", OK), ("limits", WARNING), ("settings", OK)]
    # An empty value is told as what it is: a problem of the configuration.
    assert marks(PI_SCOPED_LIMITS_FILE="") == [("windows", OK), ("settings", OK)]
    assert [one.mark for one in files.look(known(tmp_path), None)] == [OK, OK, OK]


CONTENTS = {
    "windows": (
        "PI_PAUSE_WINDOWS_FILE",
        '{"windows": [{"scope": "*", "from": "1:00", "to": "2:00"}]}',
        [],
        OK,
    ),
    "no windows": ("PI_PAUSE_WINDOWS_FILE", "[]", ["loads"], FAILED),
    "two wrong rows": (
        "PI_SCOPED_LIMITS_FILE",
        '{"version": 1, "limits": [{"scope": "a/b", "day": 0}, {"scope": "a/c", "day": "x"}]}',
        ["loads", "loads"],
        FAILED,
    ),
    "a key in vain": (
        "PI_SCOPED_LIMITS_FILE",
        '{"version": 1, "limits": [{"scope": "a/b", "day": 1, "dya": 2}]}',
        ["unknown-key"],
        WARNING,
    ),
    "folders that are not here": (
        "PI_SCOPED_LIMITS_FILE",
        (
            '{"version": 1, "limits": [{"scope": "/nothing", "day": 1}, {"scope": "/", "day": 1},'
            ' {"scope": "/proc/self/cwd", "day": 1}]}'
        ),
        ["folder-missing", "folder-missing"],
        WARNING,
    ),
    "settings": ("PI_SETTINGS_FILE", '{"dailyCap": 3}', [], OK),
    "wrong settings": ("PI_SETTINGS_FILE", '{"dailyCap": 0}', ["loads"], FAILED),
    "settings in vain": ("PI_SETTINGS_FILE", '{"dailyCpa": 3}', ["unknown-key"], WARNING),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_what_a_configured_file_holds(tmp_path, name):
    variable, content, checks, mark = CONTENTS[name]
    (tmp_path / "file.json").write_text(content)

    found = list(files.look(known(tmp_path, **{variable: str(tmp_path / "file.json")}), tmp_path))

    told = [one for one in found if one.mark is not OK]
    assert [one.check for one in told] == checks
    assert {one.mark for one in told} <= {mark}
    assert all(str(tmp_path / "file.json") in one.text and one.fix for one in told)


@pytest.mark.parametrize("variable", ["PI_PAUSE_WINDOWS_FILE", "PI_SCOPED_LIMITS_FILE"])
def test_a_configured_file_that_is_not_there(tmp_path, variable):
    found = [
        one for one in files.look(known(tmp_path, **{variable: "/nothing.json"}), None) if one.mark is FAILED
    ]

    assert [one.text for one in found] == ["/nothing.json: does not exist (no worker starts with it)"]
    assert found[0].fix.startswith("Create it, or take its name out of the settings.")


def test_what_is_kept_where_the_system_removes_it(tmp_path, monkeypatch):
    def told(**variables):
        return [
            (one.mark, one.text.partition(" ")[0]) for one in retention.look(known(tmp_path, **variables))
        ]

    temporary = tempfile.gettempdir()
    assert told(PI_STATE_DIR=f"{temporary}/x") == [(WARNING, f"{temporary}/x")]
    assert told(PI_STATE_DIR="/srv/state", PI_LOGS_DIR="/var/tmp/logs") == [(WARNING, "/var/tmp/logs")]
    assert told(PI_STATE_DIR="/srv/state") == [(OK, "records")]
    monkeypatch.chdir(tmp_path)
    # A link that lies elsewhere.
    assert told(PI_STATE_DIR="/proc/self/cwd/x") == [(WARNING, "/proc/self/cwd/x")]
    assert told(PI_STATE_DIR="relative") == [(WARNING, "not")]
