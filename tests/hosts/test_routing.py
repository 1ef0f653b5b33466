from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.routing import Route, Why, decide, fnv1a, route
from hosts.rows import GONE_MS, LATE_MS, HostRow, Unreachable

VECTORS = Path(__file__).parents[1] / "vectors" / "capability-routing.json"
CASES = [case for case in json.loads(VECTORS.read_text())["cases"] if case["in"]["op"] == "route"]
PROD = frozenset({"s:prod"})


def host(name, *, caps=PROD, stale_ms=0, routes=True, draining=False):
    return HostRow(name=name, caps=caps, stale_ms=stale_ms, routes=routes, draining=draining)


OTHER = host("other", caps=frozenset())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_jobs_go_where_the_reference_sends_them(case):
    given_in = case["in"]

    assert route(given_in["hosts"], given_in["needs"], given_in["jobId"]) == case["out"]["host"]


@pytest.mark.parametrize(
    ("rows", "chosen", "why"),
    [
        pytest.param([], None, Why.NOBODY_LIVES, id="nobody"),
        pytest.param(Unreachable("TimeoutError"), None, Why.NOBODY_LIVES, id="nobody knows"),
        pytest.param([host("a"), OTHER], "a", Why.HOST, id="one of two"),
        pytest.param([host("a"), host("b")], None, Why.ALL_HAVE_IT, id="both"),
        pytest.param([OTHER], None, Why.NOBODY_HAS_IT, id="the wrong one"),
        pytest.param([host("a", routes=False), OTHER], None, Why.NO_OWN_QUEUE, id="no queue of its own"),
        pytest.param([host("a b"), host(""), OTHER], None, Why.NO_OWN_QUEUE, id="names that make no queue"),
        pytest.param([host("a", stale_ms=LATE_MS), OTHER], "a", Why.HOST, id="just alive"),
        pytest.param([host("a", stale_ms=LATE_MS + 1), OTHER], None, Why.NOBODY_HAS_IT, id="late"),
        pytest.param([host("a", stale_ms=GONE_MS + 1)], None, Why.NOBODY_LIVES, id="gone"),
        pytest.param([host("a", stale_ms=None)], None, Why.NOBODY_LIVES, id="no beat: not alive"),
        pytest.param([host("a", draining=True), host("b"), OTHER], "b", Why.HOST, id="not who drains"),
        pytest.param(
            [host("a", draining=True), OTHER], "a", Why.HOST, id="who drains, when nobody else has it"
        ),
        pytest.param(
            [{"name": "a", "caps": "s:prod", "routes": "true", "staleMs": True}],
            None,
            Why.NOBODY_LIVES,
            id="no age",
        ),
    ],
)
def test_a_job_that_needs_something_goes_where_it_is(rows, chosen, why):
    assert decide(rows, PROD, "local-1") == Route(chosen, why)


@pytest.mark.parametrize("needs", [None, [], frozenset()])
def test_a_job_that_needs_nothing_goes_to_the_shared_queue_whoever_is_there(needs):
    assert decide([host("a"), OTHER], needs, "local-1") == Route(None, Why.NO_NEEDS)


@pytest.mark.parametrize(("text", "found"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_the_hash_is_the_one_that_everybody_publishes(text, found):
    assert fnv1a(text) == found


@given(st.text(st.characters(exclude_categories=[]), max_size=8))
def test_the_hash_is_over_code_units(text):
    """A letter of two bytes is one unit, one beyond the basic plane is two, half a one is one."""
    assert fnv1a(text) == by_the_book(text)


def by_the_book(text):
    found = 0x811C9DC5
    for letter in text:
        over = ord(letter) - 0x10000
        for unit in [0xD800 + (over >> 10), 0xDC00 + (over & 0x3FF)] if over >= 0 else [ord(letter)]:
            found = (found ^ unit) * 0x01000193 % 2**32
    return found


@given(st.permutations(["a", "b", "c", "d"]), st.text(max_size=8))
def test_neither_order_nor_a_row_that_comes_twice_changes_the_choice(names, job_id):
    rows = [host(name) for name in names]

    assert route([*rows, rows[0], OTHER], PROD, job_id) == route([*map(host, "abcd"), OTHER], PROD, job_id)


def test_jobs_spread_over_all_who_can():
    rows = [*map(host, "abc"), OTHER]
    went = [route(rows, PROD, f"local-{number}") for number in range(300)]

    assert min(went.count(name) for name in "abc") > 60
