from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.instants import instant_of
from dispatch.money.windows import (
    COUNTER_TTL,
    Caps,
    State,
    Window,
    count_of,
    counter_key,
    grant_key,
    hold_above,
    scope_prefix,
    state_of,
    token_counter_key,
    window_end,
)

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "budget-windows.json").read_text())["cases"]
instants = st.datetimes(
    datetime(2000, 1, 1),  # noqa: DTZ001 - Hypothesis takes bounds without a zone
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


def cases_of(op: str) -> list:
    return [
        pytest.param(case["in"], case["out"], id=case["name"]) for case in CASES if case["in"]["op"] == op
    ]


def test_no_case_is_left_out_here_or_in_the_tests_of_ledger_and_tokens():
    assert {case["in"]["op"] for case in CASES} == {"keys", "state", "reserve", "tokens"}
    assert not [case["name"] for case in CASES if case.get("quirk") or case.get("newer")]


@pytest.mark.parametrize(("given_", "out"), cases_of("keys"))
def test_a_counter_is_named_by_its_utc_bucket(given_, out):
    now = datetime.fromisoformat(given_["at"])

    keys = {window.value: counter_key(given_["prefix"], window, now) for window in Window}

    assert {**keys, "tokens": token_counter_key(given_["prefix"], now)} == out


@pytest.mark.parametrize(("given_", "out"), cases_of("state"))
def test_a_counter_is_judged_against_cap_and_hold(given_, out):
    state = state_of(given_["value"], cap=given_["cap"], hold_percent=given_["pct"])

    assert {"state": state.value} == out


@given(instants)
def test_a_week_begins_on_the_monday_before(now):
    monday = datetime.fromisoformat(counter_key("b", Window.WEEK, now).removeprefix("b:w:") + "T00:00Z")

    assert monday.weekday() == 0
    assert timedelta() <= now - monday < timedelta(days=7)


@given(instants, st.integers(-14, 14))
def test_the_time_zone_of_the_question_does_not_matter(now, hours):
    there = now.astimezone(timezone(timedelta(hours=hours)))

    assert [counter_key("b", window, there) for window in Window] == [
        counter_key("b", window, now) for window in Window
    ]


@given(instants, st.sampled_from(Window))
def test_a_counter_outlives_its_window(now, window):
    longest = {Window.DAY: 1, Window.WEEK: 7, Window.MONTH: 31}[window]

    assert COUNTER_TTL[window] > timedelta(days=longest)
    assert counter_key("b", window, now) != counter_key("b", window, now + timedelta(days=longest))


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        # A Thursday, a Sunday, the last day of a year, the longest and the shortest month.
        ("2026-01-01T00:00:00Z", ("2026-01-02", "2026-01-05", "2026-02-01")),
        ("2026-02-01T23:59:59.999999Z", ("2026-02-02", "2026-02-02", "2026-03-01")),
        ("2025-12-31T12:00:00Z", ("2026-01-01", "2026-01-05", "2026-01-01")),
        ("2026-01-31T22:00:00-05:00", ("2026-02-02", "2026-02-02", "2026-03-01")),
        ("2028-02-29T05:00:00Z", ("2028-03-01", "2028-03-06", "2028-03-01")),
    ],
)
def test_a_window_turns_at_midnight_utc(now, ends):
    instant = datetime.fromisoformat(now)

    assert tuple(window_end(window, instant) for window in Window) == tuple(
        datetime.fromisoformat(f"{end}T00:00:00Z") for end in ends
    )


@given(instants, st.sampled_from(Window))
def test_a_counter_changes_when_its_window_turns_and_not_before(now, window):
    end = window_end(window, now)
    before = end - timedelta(microseconds=1)

    assert now < end
    assert counter_key("b", window, now) == counter_key("b", window, before) != counter_key("b", window, end)


@pytest.mark.parametrize("text", ["", "many", "1.5", "007", "-0", "+1", " 1", "1_0", "\u0661", "1" * 17])
def test_what_the_server_would_not_count_is_no_count(text):
    with pytest.raises(ValueError, match="whole number"):
        count_of(text.encode())


def test_a_count_is_read_and_a_missing_one_is_none_so_far():
    assert [count_of(text) for text in (None, b"0", b"-3", b"25")] == [0, 0, -3, 25]


@given(st.integers(1, 10**6), st.integers(1, 99))
def test_the_hold_leaves_exactly_its_share_free(cap, percent):
    free = hold_above(cap, percent)

    assert free * 100 <= cap * percent < (free + 1) * 100
    assert state_of(free, cap=cap, hold_percent=percent) is State.OK
    assert state_of(free + 1, cap=cap, hold_percent=percent) is State.SOFT_HOLD


def test_only_windows_with_a_cap_are_active_in_the_order_of_testing():
    assert Caps(month=5, day=0).active() == ((Window.DAY, 0), (Window.MONTH, 5))


def test_a_naive_instant_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        counter_key("budget", Window.DAY, datetime(2026, 1, 1))  # noqa: DTZ001


def test_milliseconds_are_read_without_rounding():
    assert instant_of(1_767_225_599_999) == datetime(2025, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


def test_ledgers_and_grants_have_names_of_their_own():
    assert scope_prefix("0123456789abcdef") == "budget:s:0123456789abcdef"
    assert grant_key("repeat:nightly:17", 1) == "budget:r:repeat:nightly:17:1"
