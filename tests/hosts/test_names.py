from __future__ import annotations

import json
from pathlib import Path

import pytest

from hosts import names

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "queue-names.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_queues_are_named_as_the_reference_does(case):
    given_in = case["in"]

    if given_in["op"] == "fleet":
        found = names.routed_queues(given_in["hosts"])
    else:
        found = names.union(given_in["registry"], given_in["keyspace"])

    assert list(found) == case["out"]["queues"]


def test_a_host_queue_comes_apart_in_one_way():
    assert names.host_queue("a.b-c_1") == "pi-jobs@a.b-c_1"
    for name in ("", "a@b", "a b", "*", ".a", "a\n"):
        with pytest.raises(ValueError, match="not a worker name"):
            names.host_queue(name)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("pi-jobs", True),
        ("pi-jobs@mac", True),
        ("pi-jobs@", False),
        ("pi-job", False),
        ("pi-jobs@a@b", False),
        ("pi-jobs@*", False),
        ("pi-jobs@a\n", False),
        ("", False),
        ("*", False),
    ],
)
def test_only_the_shared_queue_and_those_of_valid_names_are_queues(name, valid):
    assert names.is_queue(name) is valid


def test_names_found_in_the_server_are_checked_before_use():
    members = [b"pi-jobs@b", "pi-jobs@a", b"pi-jobs@\xff", b"other", b"pi-jobs@a", b"pi-jobs"]

    assert names.found_queues(members) == ("pi-jobs", "pi-jobs@a", "pi-jobs@b")
