from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts import capabilities

VECTORS = Path(__file__).parents[1] / "vectors" / "capability-routing.json"
CASES = [case for case in json.loads(VECTORS.read_text())["cases"] if case["in"]["op"] != "route"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def of_tokens(given_in):
    found = capabilities.tokens(given_in.get("secretProfiles"), given_in.get("waitProfiles"))
    return {"tokens": list(found), "caps": capabilities.published(found)}


FOUND = {
    "tokens": of_tokens,
    "parse": lambda given_in: {"tokens": sorted(capabilities.parse(given_in["caps"]))},
    "needs": lambda given_in: {"needs": sorted(capabilities.needs_of(given_in["job"]))},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_capabilities_are_those_of_the_reference(case):
    assert FOUND[case["in"]["op"]](case["in"]) == case["out"]


@pytest.mark.parametrize(
    ("data", "needs"),
    [
        pytest.param({"secrets": {"TOKEN": "ref"}}, {"s:default"}, id="no profile: the default"),
        pytest.param(
            {"secrets": {"TOKEN": "ref"}, "secretsProfile": None}, {"s:default"}, id="no profile, written"
        ),
        pytest.param({"secrets": {"TOKEN": "ref"}, "secretsProfile": "prod"}, {"s:prod"}, id="a profile"),
        pytest.param({"secrets": {}}, set(), id="no secret"),
        pytest.param(
            {
                "secretsProfile": "p",
                "waitFor": [{"profile": "b"}, {"after": "x"}, {"profile": "a"}, {"profile": "b"}],
            },
            {"s:p", "w:a", "w:b"},
            id="everything at once, each once",
        ),
        pytest.param({"waitFor": [{"profile": "a b"}, {"profile": ["a"]}]}, set(), id="no names"),
    ],
)
def test_a_job_needs_the_profiles_that_it_uses(data, needs):
    assert capabilities.needs_of(data) == needs


@given(st.lists(st.from_regex(r"[sw]:[A-Za-z0-9._-]{1,8}", fullmatch=True)))
def test_what_is_published_is_read_back(tokens):
    assert capabilities.parse(capabilities.published(tokens)) == set(tokens)


@given(ANYTHING, ANYTHING, ANYTHING)
def test_whatever_stands_there_only_tokens_come_of_it(one, two, three):
    found = capabilities.parse(one) | capabilities.needs_of(
        {"secrets": one, "secretsProfile": two, "waitFor": three}
    )

    assert all(map(capabilities.is_token, found | capabilities.needs_of(one)))
