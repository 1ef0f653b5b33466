"""What `run` makes of --after and --wait-for, and what this host says of what a job is to wait for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dispatch.console.conditions import authored, judged_here, misused
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError

NOW = datetime(2026, 9, 1, 9, tzinfo=UTC)
DECLARED = {"PI_WAIT_PROFILES": "tests:/opt/t,deploy:/opt/d"}
OTHERS = "declared are deploy, tests; --needs w:lint sends the job to a host that has it"
FLEET = {"PI_WORKER_NAME": "here", "VALKEY_URL": "redis://there"}


def judged(*, afters=(), profiles=(), routed=False, **variables):
    config = conf.load({"HOME": "/home/me", "PI_EGRESS": "0", **variables})
    return judged_here(authored(afters, profiles), config, is_routed=routed, now=NOW)


def test_the_clock_comes_before_every_check_and_checks_keep_their_order():
    assert authored(["2026-09-01T09:00Z"], ["b", "a"]) == (
        {"after": "2026-09-01T09:00Z"},
        {"profile": "b"},
        {"profile": "a"},
    )
    assert authored([], []) is None


INSTANT = "allowed is an existing date and time with its own zone, such as 2026-09-01T09:00:00Z or"
TWICE = "2026-09-01T09:00Z"


@pytest.mark.parametrize(
    ("afters", "profiles", "problems"),
    [
        pytest.param([], [], [], id="nothing"),
        pytest.param([TWICE], ["a", "b", "c"], [], id="good"),
        pytest.param(
            ["tomorrow"],
            [],
            [f"--after 'tomorrow' cannot be used; {INSTANT} 2026-09-01T09:00+02:00"],
            id="word",
        ),
        pytest.param(
            [TWICE, "x; y", TWICE],
            ["a b"],
            [
                f"--after 'x; y' cannot be used; {INSTANT} 2026-09-01T09:00+02:00",
                f"--after '{TWICE}' is one too many; allowed is one",
                (
                    "--wait-for 'a b' cannot be used; allowed is a name of letters, digits, dots, underscores"
                    " and hyphens"
                ),
            ],
            id="each in its own words",
        ),
        pytest.param(
            [], ["a", "b", "a"], ["--wait-for 'a' is given twice; allowed is one"], id="a check twice"
        ),
        pytest.param(
            ["x"],
            ["a"] * 4,
            ["--after and --wait-for are given 5 times together; allowed are 4"],
            id="five",
        ),
    ],
)
def test_what_is_written_wrong_is_said_in_the_words_that_were_typed(afters, profiles, problems):
    assert list(misused(afters, profiles)) == problems


@pytest.mark.parametrize(
    ("asked", "notes"),
    [
        pytest.param({}, (), id="nothing"),
        pytest.param(
            {"afters": ["2026-09-01T11:00:01+02:00"], "profiles": ["tests", "deploy"]}, (), id="good"
        ),
        pytest.param({"afters": ["2026-10-01T09:00:00Z"]}, (), id="as far as allowed"),
        pytest.param(
            {"afters": ["2026-09-01T10:59:00+02:00"]},
            ("--after has passed by 1 min; the job does not wait for it",),
            id="past",
        ),
        pytest.param({"afters": ["2026-09-01T09:00Z"]}, ("--after has passed by 0 s",), id="now"),
        pytest.param({"profiles": ["tests", "lint"], "routed": True, **FLEET}, (), id="routed"),
    ],
)
def test_what_can_come_true_is_taken_with_what_should_be_known_of_it(asked, notes):
    found = judged(**{**DECLARED, **asked})

    assert len(found) == len(notes)
    assert all(text.startswith(note) for text, note in zip(found, notes, strict=True))


@pytest.mark.parametrize(
    ("asked", "problems"),
    [
        pytest.param(
            {**DECLARED, "profiles": ["lint"]},
            ["--wait-for 'lint' is not in this host's PI_WAIT_PROFILES; declared are deploy, tests"],
            id="undeclared",
        ),
        pytest.param(
            {**DECLARED, **FLEET, "profiles": ["lint"]},
            [f"--wait-for 'lint' is not in this host's PI_WAIT_PROFILES; {OTHERS}"],
            id="undeclared on one host of several",
        ),
        pytest.param(
            {"afters": ["2026-10-01T09:00:01Z"], "profiles": ["__proto__"]},
            [
                (
                    "--after is 30 d away; allowed are 30 d, up to 2026-10-01 09:00:00 UTC"
                    " (PI_WAIT_AFTER_MAX_MS)"
                ),
                "--wait-for '__proto__' is not in this host's PI_WAIT_PROFILES; none is declared",
            ],
            id="all at once",
        ),
        pytest.param(
            {**FLEET, "afters": ["2026-09-01T11:01:01Z"], "PI_WAIT_AFTER_MAX_MS": "3600000"},
            [
                (
                    "--after is 2 h 1 min away; allowed are 1 h, up to 2026-09-01 10:00:00 UTC"
                    " (PI_WAIT_AFTER_MAX_MS)"
                )
            ],
            id="beyond what this host of several allows",
        ),
    ],
)
def test_what_cannot_come_true_is_refused_with_what_is_allowed(asked, problems):
    with pytest.raises(ConfigurationError) as raised:
        judged(**asked)

    assert list(raised.value.problems) == problems
