"""`waitFor`: the vectors, instants on the nights when clocks change, and every refusal in its words."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.operator_files.problems import Problem
from dispatch.waits.conditions import (
    instant,
    is_profile,
    misspelled,
    problems_of,
    problems_of_trigger,
    read,
)
from pidispatch_site.parsing import Unusable, profiles

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "wait-for.json").read_text())["cases"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Q 5.1 lets a cron trigger wait, which the reference refuses.
DEVIATIONS = {"validate-055"}


def cases_of(op: str) -> list:
    return [
        pytest.param(case["in"], case["out"], id=case["name"])
        for case in CASES
        if case["in"]["op"] == op and not case.get("quirk") and case["name"] not in DEVIATIONS
    ]


def ms(at: datetime | None) -> int | None:
    return None if at is None else (at - EPOCH) // timedelta(milliseconds=1)


def test_no_case_is_left_out_here_or_in_the_test_of_the_distances():
    assert {case["in"]["op"] for case in CASES} == {
        *("validate", "after", "read", "profiles"),
        *("backoff", "throttle"),
    }
    # Paths of Windows.
    assert [case["name"] for case in CASES if case.get("quirk")] == ["profiles-031", "profiles-032"]


@pytest.mark.parametrize(("given_", "out"), cases_of("validate"))
def test_a_trigger_s_conditions_are_taken_or_refused(given_, out):
    problems = problems_of_trigger(given_["on"], given_["run"])

    assert (not problems) is out["accept"]
    assert problems or given_["run"].get("waitFor") == out["conditions"]


def test_a_cron_trigger_may_wait():
    (case,) = [case["in"] for case in CASES if case["name"] in DEVIATIONS]

    assert case["onType"] == "cron"
    assert problems_of_trigger(case["on"], case["run"]) == []


@pytest.mark.parametrize(("given_", "out"), cases_of("after"))
def test_an_instant_is_read_or_is_none(given_, out):
    assert ms(instant(given_["text"])) == out["ms"]


@pytest.mark.parametrize(("given_", "out"), cases_of("read"))
def test_a_worker_reads_the_conditions_of_a_job(given_, out):
    found = read(given_["job"].get("waitFor"))

    assert out == {
        "armed": found is not None,
        "afterMs": ms(found.after) if found else None,
        "profiles": list(found.profiles) if found else [],
        "label": found.label if found else None,
        "unreadable": found.unreadable if found else 0,
    }


def test_two_instants_make_the_checks_beside_them_unreadable_too():
    found = read([{"after": "2026-09-01T09:00Z"}, {"profile": "ci"}, {"after": 5}])

    assert (found.unreadable, found.profiles) == (3, ("ci",))


LONG_INSTANT = "2026-09-01T09:00:00.{}Z"


@pytest.mark.parametrize(
    ("conditions", "unreadable"),
    [
        pytest.param([{"profile": f"p{number}"} for number in range(4)], 0, id="four"),
        pytest.param([{"profile": f"p{number}"} for number in range(5)], 5, id="five"),
        pytest.param([{"profile": "p"}] * 1000, 1000, id="a thousand"),
        pytest.param([{"profile": f"{number}" * 255} for number in range(4)], 0, id="long names"),
        pytest.param([{"profile": "x" * 256}, {"profile": "ok"}], 1, id="a name too long"),
        pytest.param([{"profile": "x" * 1_000_000}], 1, id="a name of a megabyte"),
        pytest.param([{"after": LONG_INSTANT.format("5" * 43)}], 0, id="a long instant"),
        pytest.param([{"after": LONG_INSTANT.format("5" * 44)}], 1, id="an instant too long"),
        pytest.param([{"after": LONG_INSTANT.format("5" * 1_000_000)}], 1, id="an instant of a megabyte"),
    ],
)
def test_what_a_queued_job_waits_for_has_bounds_and_its_author_has_the_same(conditions, unreadable):
    found = read(conditions)

    assert found.unreadable == unreadable
    assert len(found.profiles) <= 4
    assert len(found.label or "") < 4 * 260
    assert bool(problems_of(conditions, place="run.waitFor")) is bool(unreadable)


@pytest.mark.parametrize(("given_", "out"), cases_of("profiles"))
def test_the_table_of_checks_is_taken_or_refused(given_, out):
    try:
        table = {name: str(path) for name, path in profiles(given_["value"]).items()}
    except Unusable:
        assert not out["accept"]
    else:
        assert {"accept": True, "table": table} == out


@pytest.mark.parametrize(
    ("zone", "text", "utc"),
    [
        # the last instant before the change, the first after it, and the hour that comes twice
        ("America/New_York", "2026-03-08T01:59:59.999-05:00", "2026-03-08T06:59:59.999"),
        ("America/New_York", "2026-03-08T03:00:00-04:00", "2026-03-08T07:00:00"),
        ("America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00"),
        ("America/New_York", "2026-11-01T01:30:00-05:00", "2026-11-01T06:30:00"),
        ("Europe/London", "2026-03-29T00:59:59+00:00", "2026-03-29T00:59:59"),
        ("Europe/London", "2026-03-29T02:00:00+01:00", "2026-03-29T01:00:00"),
        ("Europe/London", "2026-10-25T01:30:00+01:00", "2026-10-25T00:30:00"),
        ("Europe/London", "2026-10-25T01:30:00+00:00", "2026-10-25T01:30:00"),
        ("Australia/Lord_Howe", "2026-04-05T01:45:00+11:00", "2026-04-04T14:45:00"),
        ("Australia/Lord_Howe", "2026-04-05T01:45:00+10:30", "2026-04-04T15:15:00"),
        ("Australia/Lord_Howe", "2026-10-04T01:59:59+10:30", "2026-10-03T15:29:59"),
        ("Australia/Lord_Howe", "2026-10-04T02:30:00+11:00", "2026-10-03T15:30:00"),
        ("America/Santiago", "2026-04-04T23:30:00-03:00", "2026-04-05T02:30:00"),
        ("America/Santiago", "2026-04-04T23:30:00-04:00", "2026-04-05T03:30:00"),
        ("America/Santiago", "2026-09-05T23:59:59-04:00", "2026-09-06T03:59:59"),
        ("America/Santiago", "2026-09-06T01:00:00-03:00", "2026-09-06T04:00:00"),
        ("Asia/Kathmandu", "2026-03-08T02:30:00+05:45", "2026-03-07T20:45:00"),
        ("UTC", "2026-03-29T01:30:00+00:00", "2026-03-29T01:30:00"),
        ("UTC", "2026-10-25T01:30:00Z", "2026-10-25T01:30:00"),
    ],
)
def test_an_instant_on_the_night_of_a_change_is_one_instant(zone, text, utc):
    found = instant(text)

    assert found.isoformat(timespec="milliseconds").startswith(utc)
    # The zone has that offset then: the row is about a night that exists.
    assert found.astimezone(ZoneInfo(zone)).isoformat() == datetime.fromisoformat(text).isoformat()


@given(
    at=st.datetimes(
        datetime(2, 1, 1),  # noqa: DTZ001 - Hypothesis takes bounds without a zone
        datetime(9998, 1, 1),  # noqa: DTZ001
        timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    )
)
def test_whatever_iso_writes_is_read_as_that_instant(at):
    assert instant(at.isoformat(timespec="milliseconds")) == at.replace(
        microsecond=at.microsecond // 1000 * 1000
    )
    assert instant(at.isoformat()).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("0000-01-01T00:00Z", "0001-01-01T00:00+01:00", "9999-12-31T23:59-00:01"),
        *("2026-09-01T24:00Z", "2026-09-01T09:60Z", "2026-09-01T09:00:60Z", "2026-09-01T09:00+24:00"),
        *("2026-09-01T09:00Z\n", "2026-09-01T09:00:00.Z", "2026-09-01T09:00 Z", "2026-09-01T09:00:00,5Z"),
        *(
            "2026-09-01T09:00:00\u221205:00",
            "\u0662\u0660\u0662\u0666-09-01T09:00Z",
            "+002026-09-01T09:00Z",
            b"2026-09-01T09:00Z",
            True,
        ),
    ],
)
def test_what_only_looks_like_an_instant_is_none(text):
    assert instant(text) is None


NAME_RULE = "allowed is a name of letters, digits, dots, underscores and hyphens"


@pytest.mark.parametrize(
    ("authored", "place", "words"),
    [
        (None, "", "is null; allowed is a list of conditions, each {"),
        ({"after": "2026-09-01T09:00Z"}, "", "is {'after': '2026-09-01T09:00Z'}; allowed is a list of"),
        ([], "", "has 0 conditions; allowed are 1 to 4; leave the field out"),
        ([{"profile": name} for name in "abcde"], "", "has 5 conditions; allowed are 1 to 4"),
        (["ci"], "[0]", "is 'ci'; allowed is {"),
        ([{}], "[0]", "is {}; allowed is {"),
        (
            [{"profile": "a"}, {"profile": "b", "after": "x"}],
            "[1]",
            "is {'profile': 'b', 'after': 'x'}; allowed",
        ),
        ([{"exclusive": True}], "[0]", "has the key 'exclusive'; allowed is {"),
        (
            [{"after": "2026-02-29T09:00Z"}],
            "[0]",
            "has after '2026-02-29T09:00Z'; allowed is an existing date",
        ),
        ([{"after": "2026-09-01T09:00"}], "[0]", "has after '2026-09-01T09:00'; allowed is an existing date"),
        ([{"profile": "a b"}], "[0]", "has profile 'a b'; allowed is a name of letters"),
        (
            [{"profile": "x" * 256}],
            "[0]",
            f"has profile '{'x' * 96}...; {NAME_RULE}, at most 255 characters",
        ),
        ([{"profile": None}], "[0]", "has profile null; allowed is a name of letters"),
        ([{"profile": "a"}, {"profile": "a"}], "[1]", "is a second profile 'a'; allowed is one"),
        (
            [{"after": "2026-09-01T09:00Z"}, {"after": "2027-09-01T09:00Z"}],
            "[1]",
            "is a second after; allowed is one",
        ),
    ],
)
def test_a_refusal_says_what_was_found_where_and_what_is_allowed(authored, place, words):
    (problem,) = problems_of(authored, place="run.waitFor")

    assert problem.place == f"run.waitFor{place}"
    assert problem.text.startswith(words)


def test_all_problems_are_told_at_once_and_a_long_value_is_cut():
    problems = problems_of([{"after": "x" * 1000}, {"news": 1}, {"profile": "ok"}, 5], place="waitFor")

    assert [one.place for one in problems] == ["waitFor[0]", "waitFor[1]", "waitFor[3]"]
    assert all(len(one.text) < 300 for one in problems)


@pytest.mark.parametrize(
    ("on", "run", "problem"),
    [
        (
            {"wait_for": 1},
            {},
            Problem("t.on", "has the key 'wait_for'; conditions to wait for stand in run.waitFor"),
        ),
        (
            {"waitFor": []},
            {},
            Problem("t.on", "has the key 'waitFor'; conditions to wait for stand in run.waitFor"),
        ),
        ({}, {"WaitFor": []}, Problem("t.run", "has the key 'WaitFor'; it is spelled waitFor")),
        (
            {},
            {"waitFor": [{"profile": "a"}], "replicas": 2},
            Problem("t.run.waitFor", "stands beside run.replicas; allowed is one of the two"),
        ),
        (
            {"once": True},
            {"waitFor": [{"profile": "a"}]},
            Problem("t.run.waitFor", "stands beside on.once; allowed is one of the two"),
        ),
    ],
)
def test_a_trigger_s_key_in_the_wrong_place_spelling_or_company_is_named(on, run, problem):
    assert problems_of_trigger(on, run, place="t.") == [problem]


def test_a_trigger_that_only_might_be_a_one_shot_may_wait():
    assert problems_of_trigger({"once": False}, {"waitFor": [{"profile": "a"}]}) == []


def test_only_other_spellings_of_the_very_word_are_misspelled():
    assert misspelled(["waitFor", "wait-for", "WAITFOR", "waitFor\n", "waitFors", "wait", ""]) == (
        *("wait-for", "WAITFOR", "waitFor\n"),
    )


@pytest.mark.parametrize(
    ("name", "fits"),
    [("a.b_c-D9", True), ("..", True), ("", False), ("a\n", False), ("ä", False), (5, False)],
)
def test_a_check_has_a_name_of_the_alphabet(name, fits):
    assert is_profile(name) is fits
