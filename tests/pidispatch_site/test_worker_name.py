from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch_site import worker_name
from pidispatch_site.conf import load
from pidispatch_site.errors import ConfigurationError

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "worker-names.json").read_text())["cases"]


def answer(case):
    """What the product makes of a vector's input, in the vector's words."""
    given_in = case["in"]
    if given_in["op"] == "default":
        return {"name": worker_name.defaulted(lambda: given_in["hostname"])}
    try:
        config = load({"HOME": "/h", "PI_WORKER_NAME": given_in["value"]}, hostname=lambda: "x")
    except ConfigurationError:
        return {"accept": False}
    if not config.worker_name_declared:
        return {"accept": True, "defaulted": True}
    return {"accept": True, "name": config.worker_name}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_names_are_made_and_refused_as_the_reference_does(case):
    assert answer(case) == case["out"]


@pytest.mark.parametrize("fault", [OSError("no name"), UnicodeError("bad name")])
def test_a_failing_hostname_gives_the_fallback(fault):
    def hostname():
        raise fault

    assert worker_name.defaulted(hostname) == "worker"


@given(st.text())
def test_whatever_the_hostname_the_name_could_have_been_declared(hostname):
    assert worker_name.declared(worker_name.defaulted(lambda: hostname)) is None
