from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.http import QueryDict

from dispatch.ids import Kind
from runs.list_address import read
from runs.outcome import Reason
from runs.walk import Facet, Key

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ms(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("24h", ms(2026, 11, 29, 12), ms(2026, 11, 29, 12)),
        ("7d", ms(2026, 11, 23, 12), ms(2026, 11, 23, 12)),
        ("90m", ms(2026, 11, 30, 10, 30), ms(2026, 11, 30, 10, 30)),
        # As an end, a day is all of it.
        ("2026-11-29", ms(2026, 11, 29), ms(2026, 11, 30)),
        ("2026-11-29 12:30", ms(2026, 11, 29, 12, 30), ms(2026, 11, 29, 12, 30)),
        ("2026-11-29T12:30:01Z", ms(2026, 11, 29, 12, 30, 1), ms(2026, 11, 29, 12, 30, 1)),
        ("2026-11-29T12:30+02:00", ms(2026, 11, 29, 10, 30), ms(2026, 11, 29, 10, 30)),
        ("yesterday", None, None),
        ("0h", None, None),
        ("99999d", ms(2026, 11, 30, 12) - 99_999 * 86_400_000, ms(2026, 11, 30, 12) - 99_999 * 86_400_000),
        ("9999-12-31", ms(9999, 12, 31), None),
        ("0001-01-01T00:00+14:00", -62_135_647_200_000, -62_135_647_200_000),
    ],
)
def test_instants(text, since, until):
    asked = read({"since": text, "until": text}, NOW)

    assert (asked.query.since_ms, asked.query.until_ms) == (since, until)
    said = [problem for problem in asked.problems if text in problem and "2026-11-30 12:00" in problem]
    assert len(said) == (since is None) + (until is None)


@pytest.mark.parametrize(
    ("facet", "fine", "allowed"),
    [
        (Facet.OUTCOME, ("policy",), {"completed", "policy", "failed"}),
        (Facet.REASON, ("stalled", "-"), {*Reason, "-"}),
        (Facet.KIND, ("github", "-"), {*Kind, "-"}),
    ],
)
def test_a_value_that_no_run_of_this_version_has_is_asked_for_all_the_same_and_said(facet, fine, allowed):
    (unknown,) = read({facet.value: "foo"}, NOW).unknown

    assert read({facet.value: "foo"}, NOW).query.facets == {facet: "foo"}
    assert str(unknown) == f"“foo” is no {facet.value} that this version knows"
    assert set(unknown.allowed) == allowed
    assert not any(read({facet.value: text}, NOW).unknown for text in fine)
    assert not read({"flow": "foo"}, NOW).unknown


def test_the_rest_of_an_address_and_the_way_back_to_one():
    given = QueryDict(
        "q=+a%00b+&host=h&flow=&outcome=failed&older_than=5~x~y&newer_than=nonsense&since=24h&z=1"
    )

    asked = read(given, NOW)

    assert asked.query.search == "ab"
    assert asked.query.facets == {Facet.HOST: "h", Facet.OUTCOME: "failed"}
    assert (asked.query.older_than, asked.query.newer_than) == (Key(5, "x~y"), None)
    assert asked.is_filtered
    assert not read(QueryDict("older_than=5~x"), NOW).is_filtered
    again = read(QueryDict(asked.address(newer_than=Key(-7, "ü&~"))[1:]), NOW)
    assert (again.query.newer_than, again.query.facets) == (Key(-7, "ü&~"), asked.query.facets)
    assert read(QueryDict("older_than=5~%00"), NOW).query.older_than is None
