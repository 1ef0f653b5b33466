from __future__ import annotations

from datetime import timedelta

import pytest

from runs import wording
from runs.outcome import Outcome, Reason
from tests.harness.records import NOON


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_sentence(reason):
    assert wording.reason_sentence(reason).endswith("."), f"add {reason!r} to runs.wording.REASONS"


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_name_and_a_sentence(outcome):
    assert wording.outcome_name(outcome)
    assert wording.outcome_sentence(outcome)


def test_a_word_of_a_later_version_stands_for_itself():
    assert wording.outcome_name("later") == "later"
    assert (
        wording.outcome_sentence("later")
        == wording.reason_sentence("later")
        == wording.reason_sentence(None)
        == ""
    )


@pytest.mark.parametrize(
    ("took", "words"),
    [
        (timedelta(seconds=0.34), "0.3 s"),
        (timedelta(seconds=59.9), "59.9 s"),
        (timedelta(minutes=3, seconds=12), "3 min 12 s"),
        (timedelta(hours=2, minutes=5), "2 h 5 min"),
        (timedelta(days=3, hours=4), "3 d 4 h"),
        (timedelta(seconds=-5), "0.0 s"),
    ],
)
def test_a_span_is_written_in_its_two_largest_units(took, words):
    assert wording.span(NOON, NOON + took) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "$0.00"), (0.0123, "$0.0123"), (0.4136, "$0.41"), (1234.5, "$1,234.50"), (None, "—"), (True, "—")],
)
def test_money_is_written_as_fine_as_it_needs_to_be(value, words):
    assert wording.dollars(value) == words


def test_what_is_absent_is_a_dash_and_never_0():
    assert wording.amount(None) == wording.moment(None) == wording.span(None, NOON) == "—"
    assert wording.amount(0) == "0"
    assert wording.exit_code(None) == "none: the worker saw no container of it end"
    assert wording.exit_code(2, "runner-policy") == wording.exit_code(2) == "2 (refused by the runner)"
    for reason in ("operator-cancel", "operator-stop", "worker-abort"):
        assert wording.exit_code(2, reason) == "2 (stopped)"
    assert wording.exit_code(77) == "77 (unknown)"


def test_what_is_neither_input_nor_output_of_a_total_is_cached():
    assert wording.cached({"input": 10, "output": 5, "total": 115, "cost": None}) == 100
    assert wording.cached({"input": 10, "output": 5, "total": 1}) == 0
    assert [wording.cached(one) for one in ({}, {"total": 5, "input": 1}, {"total": None})] == [None] * 3
