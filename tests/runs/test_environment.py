from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from pidispatch_site.errors import ConfigurationError
from pidispatch_site.known_names import MINTED
from runs import environment
from runs.request import JobUser
from tests.runs.test_container import DEADLINE, REQUEST


def built(**change) -> dict[str, str]:
    return environment.build(replace(REQUEST, **change), container_name="pi-job-x")


def test_a_plain_job_gets_exactly_these_variables_in_this_order():
    assert list(built().items()) == [
        ("PI_PROVIDER", "anthropic"),
        ("PI_MODEL", "claude-x-20260101"),
        ("PI_MAX_TURNS", "30"),
        ("PI_JOB_ID", "pi-job-x"),
        ("PLAYWRIGHT_BROWSERS_PATH", "/ms-playwright"),
        ("PLAYWRIGHT_MCP_BROWSER", "chromium"),
        ("PLAYWRIGHT_MCP_SANDBOX", "false"),
        ("PI_OFFLINE", "1"),
        ("PI_JOB_DEADLINE", "1785587400"),
        ("ANTHROPIC_API_KEY", "canary-key"),
    ]


@pytest.mark.parametrize(
    ("change", "adds"),
    [
        pytest.param({"max_tokens": 5000}, {"PI_MAX_TOKENS": "5000"}, id="token budget"),
        pytest.param({"flow": "fix-issue"}, {"PI_FLOW": "fix-issue"}, id="flow"),
        pytest.param({"flow": " "}, {}, id="blank flow"),
        pytest.param({"command": "deploy now"}, {"PI_COMMAND": "deploy now"}, id="command"),
        pytest.param({"global_allow_extensions": False}, {"PI_GLOBAL_ALLOW_EXTENSIONS": "0"}, id="opt-out"),
        pytest.param({"user": JobUser(501, 20)}, {"HOME": "/home/pi"}, id="job user"),
        pytest.param({"credentials": {"ANTHROPIC_API_KEY": "canary-key", "EMPTY": ""}}, {}, id="empty value"),
    ],
)
def test_a_feature_adds_its_variable_and_nothing_else(change, adds):
    assert built(**change) == {**built(), **adds}


def test_every_name_that_is_written_here_is_one_that_nobody_may_forward():
    everything = built(
        max_tokens=1,
        flow="f",
        command="c",
        global_allow_extensions=False,
        user=JobUser(501, 20),
        credentials={},
    )

    assert len(everything) == 14
    assert [name for name in everything if environment.may_enter(name)] == []


def test_the_deadline_is_in_whole_seconds_rounded_up():
    assert built(deadline=DEADLINE + timedelta(milliseconds=1))["PI_JOB_DEADLINE"] == "1785587401"


@pytest.mark.parametrize("kind", ["local", "github", "gitlab", "forgejo", "azure"])
def test_no_kind_of_job_sees_the_token_of_any_forge(kind: str):
    every_token = {name for names in environment.TOKEN_NAMES.values() for name in names}

    assert every_token == MINTED
    assert len(every_token) == 8
    assert not every_token & built(kind=kind).keys()


@pytest.mark.parametrize(
    "name",
    ["GH_TOKEN", "SYSTEM_ACCESSTOKEN", "GITHUB_PAT", "WEBHOOK_SECRET", "PI_OFFLINE", "HOME", "A=B", "A\n"],
)
def test_a_variable_that_may_not_enter_stops_the_job_whoever_passed_it(name: str):
    assert not environment.may_enter(name)
    with pytest.raises(ConfigurationError, match="may not be passed to a job"):
        built(credentials={name: "x"})


def test_a_value_with_a_nul_byte_is_refused_by_the_name_of_its_variable():
    with pytest.raises(ConfigurationError, match=r"OPENAI_API_KEY holds a NUL") as refusal:
        built(credentials={"OPENAI_API_KEY": "canary\0"})
    assert "canary" not in str(refusal.value)


def test_forwarding_takes_the_named_variables_that_hold_something_and_no_other(monkeypatch):
    monkeypatch.setenv("CANARY_FROM_THE_PROCESS", "canary")
    worker = {"NPM_TOKEN": "n", "EMPTY": "", "CANARY": "canary", "GH_TOKEN": "canary", "PI_MODEL": "canary"}

    taken = environment.forwarded(("NPM_TOKEN", "EMPTY", "ABSENT"), worker)

    assert taken == {"NPM_TOKEN": "n"}
    assert "canary" not in " ".join(built(credentials=taken).values())
