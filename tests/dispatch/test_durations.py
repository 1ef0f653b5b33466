"""Durations as a person types them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch import durations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("30s", timedelta(seconds=30), id="seconds"),
        pytest.param("90m", timedelta(minutes=90), id="minutes"),
        pytest.param("2h", timedelta(hours=2), id="hours"),
        pytest.param(" 3d ", timedelta(days=3), id="days, blanks around"),
        pytest.param("999999d", timedelta(days=999_999), id="longest"),
    ],
)
def test_a_number_and_a_unit_are_a_duration(text, expected):
    assert durations.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "2", "h", "0h", "-1h", "+1h", "1.5h", "1e3s", "2 h", "2H", "1h30m", "1w", "٣h", "1000000d"]
)
def test_anything_else_is_refused_with_what_is_allowed(text):
    with pytest.raises(ValueError, match="is no duration; expected a whole number with s, m, h or d"):
        durations.parse(text)


@given(st.integers(1, 999_999), st.sampled_from("smhd"))
def test_every_duration_is_positive_and_grows_with_its_number(number, unit):
    assert timedelta(0) < durations.parse(f"{number}{unit}") <= timedelta(days=999_999)
