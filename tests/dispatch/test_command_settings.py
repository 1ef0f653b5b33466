"""`manage.py settings`: what is in force and from where, changes that are said, refusals in words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dispatch.console.settings import as_json, in_force, pairs, table
from dispatch.operator_files.overlay import BY_NAME, EMPTY, KEYS, Overlay
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError
from tests.dispatch.consolekit import Case, Console, run_all

OWN = {"PI_DAILY_CAP": "12", "PI_MODEL": "of-the-environment", "PI_MAX_TURNS": ""}
CONFIGURED = {
    key.field: getattr(conf.load({"PI_STATE_DIR": "/x", **OWN}), key.field, None)
    for key in KEYS
    if key.field != "secret_profiles"
}


def rows_of(overlay, environment=OWN, configured=CONFIGURED):
    return {
        row.name: (row.value, row.source.value, str(row))
        for row in in_force(overlay, configured, environment)
    }


@pytest.mark.parametrize(
    ("overlay", "key", "row"),
    [
        pytest.param(EMPTY, "dailyCap", (12, "environment", "12"), id="environment"),
        pytest.param(EMPTY, "concurrency", (3, "default", "3"), id="default"),
        pytest.param(EMPTY, "maxTurns", (30, "default", "30"), id="empty is the default"),
        pytest.param(EMPTY, "maxTokens", (None, "default", "off"), id="off"),
        pytest.param(EMPTY, "secretProfiles", ((), "default", "none"), id="no profiles"),
        pytest.param(Overlay(daily_cap=5), "dailyCap", (5, "overlay", "5"), id="file"),
        pytest.param(Overlay(daily_cap=12), "dailyCap", (12, "overlay", "12"), id="the same in both"),
        pytest.param(Overlay(daily_cap=5), "maxTokens", (None, "default", "off"), id="others stay"),
        pytest.param(
            Overlay(secret_profiles={"a": Path("/canary"), "b": Path("/canary")}),
            "secretProfiles",
            (("a", "b"), "overlay", "a, b"),
            id="names of profiles",
        ),
    ],
)
def test_the_overlay_comes_before_the_environment_and_that_before_the_default(overlay, key, row):
    found = rows_of(overlay)

    assert found[key] == row
    assert list(found) == list(BY_NAME)


def test_each_key_has_its_variable():
    rows = in_force(EMPTY, CONFIGURED, {})

    assert [row.name for row in rows if row.variable is None] == []
    assert {row.name: row.variable for row in rows}["softHoldPct"] == "PI_SOFT_HOLD_PCT"


def test_profiles_of_the_environment_are_shown_by_their_names():
    given = {"PI_SECRET_PROFILES": "vault:/canary"}
    configured = {"secret_profiles": conf.load({"PI_STATE_DIR": "/x", **given}).secret_profiles}

    found = rows_of(EMPTY, given, configured)

    assert found["secretProfiles"] == (("vault",), "environment", "vault")


def test_the_table_is_aligned_and_has_no_path_of_a_profile():
    overlay = Overlay(model="m" * 40, secret_profiles={"vault": Path("/canary")})

    lines = table(in_force(overlay, CONFIGURED, OWN)).splitlines()

    assert len(lines) == 1 + len(KEYS)
    column, after = lines[0].index("from"), lines[0].index("allowed")
    assert {line[column:after].strip() for line in lines[1:]} == {"settings file", "environment", "default"}
    assert {line[column - 2 : column] for line in lines} == {"  "}
    assert "canary" not in "\n".join(lines)
    assert re.search(
        r"secretProfiles +vault +settings file +edited by hand in the file: an object", lines[-1]
    )


def test_json_says_the_same():
    overlay = Overlay(daily_cap=5, secret_profiles={"vault": Path("/canary")}, unknown=("other",))

    found = json.loads(json.dumps(as_json(in_force(overlay, CONFIGURED, OWN), overlay, file="/x/s.json")))

    assert found["settings"]["dailyCap"] == {
        "value": 5,
        "from": "overlay",
        "allowed": "a whole number from 1 up",
        "variable": "PI_DAILY_CAP",
    }
    assert found["settings"]["secretProfiles"]["value"] == ["vault"]
    assert (found["file"], found["unknown"]) == ("/x/s.json", ["other"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {}),
        (["a=b"], {"a": "b"}),
        (["a=b=c", "d="], {"a": "b=c", "d": ""}),
    ],
)
def test_words_are_keys_and_values(words, found):
    assert pairs(words) == found


def test_words_that_are_none_are_all_named():
    with pytest.raises(ConfigurationError) as error:
        pairs(["a", "=b", "c=1", "c=2"])

    assert [problem.split(" ")[1] for problem in error.value.problems] == ["'a'", "''", "names"]


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    home = tmp_path_factory.mktemp("settings")
    (home / "broken.json").write_text('{"dailyCap": "canary", "model": "canary canary"}')
    (home / "no.json").write_text("dailyCap=5")
    (home / "closed.json").write_text("{}")
    (home / "closed.json").chmod(0)
    (home / "locked").mkdir(mode=0o500)
    return Console(home)


BROKEN = {"PI_SETTINGS_FILE": "broken.json"}
REFUSED = {
    "slip": Case(
        words=["--set", "dialyCap=5"], code=2, says="^'dialyCap' is no setting; did you mean dailyC"
    ),
    "no value": Case(
        words=["--set", "dailyCap"], code=2, says="^--set 'dailyCap' is incomplete; write --set K"
    ),
    "all at once": Case(
        words=["--set", "dailyCap=canary", "model=a b", "--unset", "modle", "--set", "secretProfiles=x"],
        code=2,
        says=r"^(dailyCap|model) cannot.*\n(.*\n){3}$",
    ),
    "invalid file": Case(
        words=[],
        changes=BROKEN,
        code=2,
        says="(?s)broken.json: model has .*broken.json: dailyCap has .*every job of this host is refused",
    ),
    "change that leaves it invalid": Case(
        words=["--set", "dailyCap=5"], changes=BROKEN, code=2, says="(?s)broken.json: model has .*--unset KEY"
    ),
    "no JSON": Case(
        words=["--set", "dailyCap=5"], changes={"PI_SETTINGS_FILE": "no.json"}, code=2, says="is not JSON"
    ),
    "a folder": Case(words=[], changes={"PI_SETTINGS_FILE": "."}, code=2, says="is no regular file"),
    "no permission": Case(
        words=["--json"],
        changes={"PI_SETTINGS_FILE": "closed.json"},
        humble=True,
        code=2,
        says="closed.json: cannot be read: Permission denied",
    ),
    "nowhere to write": Case(
        words=["--set", "dailyCap=5"],
        changes={"PI_SETTINGS_FILE": "locked/settings.json"},
        humble=True,
        code=1,
        says="locked/settings.json cannot be written: Permission denied. Nothing was changed.",
    ),
    "no folder": Case(
        words=["--set", "dailyCap=5"],
        changes={"PI_SETTINGS_FILE": "nothing/settings.json"},
        code=1,
        says="nothing/settings.json cannot be written: No such file or directory",
    ),
    "configuration": Case(words=[], changes={"PI_DAILY_CAP": "0"}, code=2, says="^PI_DAILY_CAP is '0'; exp"),
}


@pytest.fixture(scope="module")
def refusals(console):
    cases = {name: replace(case, words=["settings", *case.words]) for name, case in REFUSED.items()}
    return run_all(console, cases)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_shown_or_changed_is_said_in_words(refusals, name):
    said, case = refusals[name], REFUSED[name]

    assert (said.code, said.out) == (case.code, ""), said
    assert re.search(case.says, said.err), said.err
    assert said.is_plain
    assert "canary" not in said.err


def test_a_refusal_changes_nothing(refusals, console):
    assert "canary" in (console.home / "broken.json").read_text()
    assert (console.home / "no.json").read_text() == "dailyCap=5"
    assert not (console.state / "settings.json").exists()


def test_settings_are_changed_together_shown_and_taken_out_again(tmp_path):
    console = Console(tmp_path / "home", variables=OWN)
    console.state.rmdir()

    refused = console.run("settings", "--set", "dailyCap=30", "--unset", "x")
    changed = console.run("settings", "--set", "dailyCap=30", "concurrency=2", "--set", "model=m")
    listed = console.run("settings")
    undone = console.run("settings", "--unset", "model", "concurrency", "--json", PI_WORKER_NAME=None)

    file = console.state / "settings.json"
    assert (refused.code, refused.out) == (2, "")
    assert changed.out == (
        "dailyCap is 30 now (settings file).\nconcurrency is 2 now (settings file).\n"
        "model is m now (settings file).\n"
        "Running workers of this host take it at the next start of a job; concurrency and raised caps"
        " within a second.\nThe file is this host's alone: change it on the other hosts of the fleet too.\n"
    )
    assert re.search(r"^dailyCap +30 +settings file +a whole number from 1 up$", listed.out, re.MULTILINE)
    assert re.search(r"^maxTurns +30 +default ", listed.out, re.MULTILINE)
    assert f"settings file: {file}\n" in listed.out
    assert "overlay" not in listed.out + changed.out
    assert json.loads(undone.out)["settings"]["model"]["value"] == "of-the-environment"
    assert json.loads(file.read_text()) == {"dailyCap": 30}
    assert console.state.stat().st_mode & 0o777 == 0o700


def test_a_key_that_means_nothing_is_shown_and_can_be_taken_out(console):
    file = console.home / "slip.json"
    file.write_text('{"dialyCap": 5, "x\\ny": 1}')

    listed = console.run("settings", PI_SETTINGS_FILE=str(file))
    undone = console.run("settings", "--unset", "dialyCap", PI_SETTINGS_FILE=str(file), PI_WORKER_NAME=None)

    assert "The file has dialyCap, which means nothing: did you mean dailyCap?\n" in listed.out
    assert "The file has x\\ny, which means nothing.\n" in listed.out
    assert undone.out.startswith("'dialyCap' is no longer in the file.\nRunning workers")
    assert "fleet" not in undone.out
    assert json.loads(file.read_text()) == {"x\ny": 1}


def test_a_setting_says_what_it_does_and_great_numbers_can_be_read():
    found = {one.name: one for one in in_force(EMPTY, {"max_tokens": 1_500_000, "model": "a-b"}, {})}

    assert [str(found[name]) for name in ("maxTokens", "dailyCap", "model")] == ["1,500,000", "off", "a-b"]
    assert all(one.meaning for one in found.values())
