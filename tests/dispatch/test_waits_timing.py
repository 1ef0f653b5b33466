"""How long a waiting job sleeps, and the order of the bounds that end the waiting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.waits.timing import (
    Bound,
    backoff,
    bound_after_check,
    bound_when_throttled,
    hold_delay,
    jittered,
    throttle_delay,
)

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "wait-for.json").read_text())["cases"]
MINUTE = 60_000
DAY = 1440 * MINUTE

bases = st.integers(30_000, 7_200_000)
times = st.integers(0, 2**53)
randoms = st.floats(0, 1, exclude_max=True)


def cases_of(op: str) -> list:
    return [
        pytest.param(case["in"], case["out"], id=case["name"]) for case in CASES if case["in"]["op"] == op
    ]


@pytest.mark.parametrize(("given_", "out"), cases_of("backoff"))
def test_the_distance_grows_with_the_time_held(given_, out):
    assert {"ms": backoff(given_["baseMs"], given_["elapsedMs"])} == out


@pytest.mark.parametrize(("given_", "out"), cases_of("throttle"))
def test_a_job_without_a_slot_comes_again_sooner(given_, out):
    assert {"delayMs": throttle_delay(given_["baseMs"], given_["heldMs"], given_["random"])} == out


@pytest.mark.parametrize(
    ("held", "longest", "random", "delay"),
    [
        (0, DAY, 0, MINUTE),
        (0, DAY, 0.5, 63_000),
        (0, DAY, 0.99999, 65_999),
        (10 * MINUTE, DAY, 0, 2 * MINUTE),
        (DAY - 5000, DAY, 0.9, 5000),
        (DAY - 10, DAY, 0, 1000),
        (DAY + 10, DAY, 0, 1000),
        (0, 1, 0, 1000),
    ],
)
def test_a_hold_ends_with_the_longest_hold_at_the_latest(held, longest, random, delay):
    assert hold_delay(MINUTE, held, longest, random) == delay


@given(base=bases, held=times, more=times, random=randoms)
def test_distances_never_shrink_and_jitter_only_adds(base, held, more, random):
    distance = backoff(base, held)

    assert base <= distance <= max(900_000, base)
    assert backoff(base, held + more) >= distance
    assert distance <= jittered(distance, random) <= distance * 1.1
    assert throttle_delay(base, held, random) >= 11_000


def test_a_clock_that_was_set_back_is_no_time_held():
    assert backoff(MINUTE, -DAY) == MINUTE


@pytest.mark.parametrize(
    ("faults", "checks", "held", "bound"),
    [
        (4, 95, DAY - 1, None),
        (5, 95, DAY - 1, Bound.MAX_FAULTS),
        (5, 96, DAY, Bound.MAX_FAULTS),
        (4, 96, DAY, Bound.MAX_CHECKS),
        (0, 97, 0, Bound.MAX_CHECKS),
        (0, 1, DAY, Bound.MAX_WAIT),
        (0, 1, None, None),
        (9, 1, None, Bound.MAX_FAULTS),
    ],
)
def test_the_bounds_are_tested_in_their_order(faults, checks, held, bound):
    limits = {"max_faults": 5, "max_checks": 96, "max_ms": DAY}

    assert bound_after_check(faults=faults, checks=checks, held_ms=held, **limits) is bound


@pytest.mark.parametrize(
    ("held", "bound"), [(None, None), (0, None), (DAY - 1, None), (DAY, Bound.MAX_WAIT_UNCHECKED)]
)
def test_a_job_that_never_gets_a_slot_expires_too(held, bound):
    assert bound_when_throttled(held_ms=held, max_ms=DAY) is bound


def test_with_the_defaults_the_count_of_checks_binds_before_the_day_is_over():
    held = 0
    for checks in range(1, 97):
        if bound := bound_after_check(
            faults=0, checks=checks, held_ms=held, max_faults=5, max_checks=96, max_ms=DAY
        ):
            break
        held += hold_delay(MINUTE, held, DAY, 0)

    assert bound is Bound.MAX_CHECKS
    assert held == pytest.approx(19 * 60 * MINUTE + 40 * MINUTE, abs=20 * MINUTE)
