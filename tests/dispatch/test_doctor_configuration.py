"""A configuration that is broken: each problem told once with its fix, and the rest of it still used."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatch.console.findings import Mark
from dispatch.doctor import configuration
from pidispatch_site.envfile import Environment

CANARY = "canary-0a1b2c"
FINE = {"PI_STATE_DIR": "/srv/state", "PI_EGRESS": "0", "HOME": "/home/pi"}
SEE = "docs/settings.md says what is allowed."

PROBLEMS = {
    "a number": (
        {"PI_CONCURRENCY": "none"},
        {"PI_CONCURRENCY"},
        "PI_CONCURRENCY is 'none'",
        f"Expected a whole number of at least 1. {SEE}",
    ),
    "a value with a semicolon": (
        {"PI_MODEL": "a; b"},
        {"PI_MODEL"},
        "PI_MODEL is 'a; b'",
        f"Expected a name without spaces, of at most 200 printable ASCII characters. {SEE}",
    ),
    "a secret": (
        {"VALKEY_URL": f"http://:{CANARY}@x"},
        {"VALKEY_URL"},
        "VALKEY_URL is set to a value that is not shown",
        None,
    ),
    "a file of a secret": (
        {"VALKEY_URL_FILE": "/nothing"},
        {"VALKEY_URL"},
        "VALKEY_URL_FILE names '/nothing', which cannot be read: No such file or directory",
        f"Correct it. {SEE}",
    ),
    "an empty value": (
        {"PI_SCOPED_LIMITS_FILE": ""},
        {"PI_SCOPED_LIMITS_FILE"},
        "PI_SCOPED_LIMITS_FILE is set to an empty value, which could mean no file or a forgotten one",
        f"Expected a path, or the line taken out. {SEE}",
    ),
    "two that do not go together": (
        {"VALKEY_URL": "embedded", "PI_WORKER_NAME": "here"},
        {"VALKEY_URL"},
        "VALKEY_URL is embedded and PI_WORKER_NAME is set: a fleet needs a server that every host reaches",
        None,
    ),
    "a forwarded secret": (
        {"PI_FORWARD_ENV": "VALKEY_URL"},
        {"PI_FORWARD_ENV"},
        "PI_FORWARD_ENV names VALKEY_URL, which is refused: it is a secret that only the worker may hold",
        None,
    ),
    "no place": (
        {"PI_STATE_DIR": "relative"},
        {"PI_STATE_DIR"},
        "PI_STATE_DIR is 'relative'",
        f"Expected a path that starts with /. {SEE}",
    ),
    "a table": (
        {"PI_WAIT_PROFILES": "ci"},
        {"PI_WAIT_PROFILES"},
        "PI_WAIT_PROFILES is 'ci'",
        None,
    ),
}


def findings(environment):
    return tuple(configuration.look(configuration.read(environment), environment))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_told_with_its_fix_and_the_rest_counts(name):
    changes, wrong, text, fix = PROBLEMS[name]
    environment = {**FINE, "PI_DAILY_CAP": "7", **changes}

    known = configuration.read(environment)
    (found,) = findings(environment)

    assert known.wrong == wrong
    assert known.config.daily_cap == 7
    assert (found.mark, found.text) == (Mark.FAILED, text)
    assert fix is None or found.fix == fix
    assert CANARY not in repr(found)


def test_a_state_directory_that_is_wrong_is_not_replaced_by_the_usual_one():
    assert configuration.read({**FINE, "PI_STATE_DIR": "relative"}).config.state_dir == Path("/nonexistent")


def test_every_problem_is_told_at_once():
    told = findings(
        {**FINE, **{name: value for changes, *_ in PROBLEMS.values() for name, value in changes.items()}}
    )

    assert sum(one.mark is Mark.FAILED for one in told) == len(PROBLEMS) + 1 - 2


def test_a_line_of_the_file_that_says_nothing_takes_nothing_away():
    environment = Environment(
        {**FINE, "PI_DAILY_CAP": "7"}, problems=("/x/.env, line 3: expected NAME=value",)
    )

    known = configuration.read(environment)

    assert (known.wrong, known.config.daily_cap) == (frozenset(), 7)
    assert [one.text for one in findings(environment)] == ["/x/.env, line 3: expected NAME=value"]


def test_where_nothing_can_be_relied_on_nothing_is_concluded(monkeypatch):
    monkeypatch.setattr(configuration, "_subject", lambda problem: None)

    known = configuration.read({**FINE, "PI_CONCURRENCY": "none"})

    assert {"PI_CONCURRENCY", "PI_STATE_DIR", "VALKEY_URL"} <= known.wrong
    assert len(known.problems) == 1


@pytest.mark.parametrize(
    ("changes", "mark", "check", "text"),
    [
        pytest.param({}, Mark.OK, "variables", "every variable can be used", id="fine"),
        pytest.param({"PI_EGRESS": "1"}, Mark.FAILED, "egress", "PI_EGRESS is on", id="egress"),
        pytest.param(
            {"PI_MAX_COST_USD": "3"},
            Mark.FAILED,
            "bound-not-built",
            "PI_MAX_COST_USD is set",
            id="a bound to come",
        ),
    ],
)
def test_what_a_worker_would_refuse_to_start_with_is_a_failure(changes, mark, check, text):
    (found,) = findings({**FINE, **changes})

    assert (found.mark, found.check) == (mark, check)
    assert text in found.text


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("PI_DALIY_CAP", "PI_DALIY_CAP is not a variable of this product", "Did you mean PI_DAILY_CAP? Else"),
        ("PI_SANDBOX_DIR", "PI_SANDBOX_DIR is set, but this version does not use it yet", "Take it out, or"),
    ],
)
def test_what_is_set_in_vain_is_a_warning(name, text, fix):
    fine, found = findings({**FINE, name: "/x"})

    assert (fine.mark, found.mark, found.text) == (Mark.OK, Mark.WARNING, text)
    assert found.fix.startswith(fix)
