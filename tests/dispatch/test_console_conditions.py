"""What `run` makes of --after and --wait-for, and what this host says of what a job is to wait for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dispatch.console.conditions import authored, judged_here
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError

NOW = datetime(2026, 9, 1, 9, tzinfo=UTC)
DECLARED = {"PI_WAIT_PROFILES": "tests:/opt/t,deploy:/opt/d"}
OTHERS = "declared are deploy, tests; a worker that does not have it either refuses the job"
FLEET = {"PI_WORKER_NAME": "here", "VALKEY_URL": "redis://there"}


def judged(*, afters=(), profiles=(), **variables):
    config = conf.load({"HOME": "/home/me", "PI_EGRESS": "0", **variables})
    return judged_here(authored(afters, profiles), config, now=NOW)


def test_the_clock_comes_before_every_check_and_checks_keep_their_order():
    assert authored(["2026-09-01T09:00Z"], ["b", "a"]) == (
        {"after": "2026-09-01T09:00Z"},
        {"profile": "b"},
        {"profile": "a"},
    )
    assert authored([], []) is None


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
            ("--after has passed by 0:01:00; the job does not wait for it",),
            id="past",
        ),
        pytest.param({"afters": ["2026-09-01T09:00Z"]}, ("--after has passed by 0:00:00",), id="now"),
        pytest.param(
            {"profiles": ["tests", "lint", "docs"], **FLEET},
            (
                f"--wait-for 'lint' is not in this host's PI_WAIT_PROFILES; {OTHERS}",
                "--wait-for 'docs' is not in this host's",
            ),
            id="one host of several",
        ),
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
            {"afters": ["2026-10-01T09:00:01Z"], "profiles": ["__proto__"]},
            [
                "--after is 30 days, 0:00:01 away; allowed are 30 days, 0:00:00 (PI_WAIT_AFTER_MAX_MS)",
                "--wait-for '__proto__' is not in this host's PI_WAIT_PROFILES; none is declared",
            ],
            id="all at once",
        ),
        pytest.param(
            {**FLEET, "afters": ["2026-09-01T10:00:01Z"], "PI_WAIT_AFTER_MAX_MS": "3600000"},
            ["--after is 1:00:01 away; allowed are 1:00:00 (PI_WAIT_AFTER_MAX_MS)"],
            id="beyond what this host of several allows",
        ),
    ],
)
def test_what_cannot_come_true_is_refused_with_what_is_allowed(asked, problems):
    with pytest.raises(ConfigurationError) as raised:
        judged(**asked)

    assert list(raised.value.problems) == problems
