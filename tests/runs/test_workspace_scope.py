from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.workspace.scope import BLANKS, canonical_folder, canonical_scope, hash16

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "scoped-limits.json").read_text())["cases"]


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["name"]) for c in VECTORS if c["in"]["op"] == "scope" and "quirk" not in c]
)
def test_the_scope_is_the_one_the_reference_derives(case: dict) -> None:
    job = case["in"]["job"]

    scope = canonical_scope(kind=job["kind"], folder=job.get("folder"), repository=job.get("repo"))

    assert scope == case["out"]["scope"]


def test_a_relative_folder_is_taken_from_the_base() -> None:
    assert canonical_folder("../b/", base="/srv/a") == "/srv/b"


@given(st.text(alphabet=st.sampled_from("/. ae\u0301\u00e9b\ufeff\t~"), max_size=30))
def test_a_canonical_folder_is_absolute_collapsed_and_stays_what_it_is(text: str) -> None:
    scope = canonical_folder(text)

    if scope is None:
        assert not text.strip(BLANKS)
        return
    assert scope.startswith("/")
    assert scope == "/" or not scope.endswith("/")
    assert not {"", ".", ".."} & set(scope.split("/")[1:]) or scope == "/"
    assert unicodedata.is_normalized("NFC", scope)
    if scope == scope.strip(BLANKS):
        assert canonical_folder(scope) == scope


@given(st.lists(st.sampled_from(["a", "b", "..", ".", ""]), max_size=8))
def test_dots_go_and_links_are_not_asked(parts: list[str]) -> None:
    expected: list[str] = []
    for part in parts:
        if part == "..":
            expected = expected[:-1]
        elif part not in {"", "."}:
            expected.append(part)

    assert canonical_folder("/" + "/".join(parts)) == "/" + "/".join(expected)


def test_a_hash_is_16_hex_digits_of_the_text_and_of_any_text() -> None:
    assert hash16("/srv/site") == "3cd3201de5fe686c"
    assert hash16("/srv/\udcff") != hash16("/srv/?")
