from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs import merging
from runs.merging import Degraded, merged
from runs.outcome import Outcome
from runs.record import order, position_ms
from tests.harness.records import NOON, a_record

HERE = a_record(job_id="j", host="here")
LATER = HERE.ended_at.replace(hour=23)


@pytest.mark.parametrize(
    ("local", "mirrored", "kept"),
    [
        pytest.param(HERE, replace(HERE, host="there", ended_at=LATER), "there", id="the later end wins"),
        pytest.param(replace(HERE, ended_at=LATER), replace(HERE, host="there"), "here", id="also here"),
        pytest.param(HERE, replace(HERE, host="there"), "here", id="local wins ties"),
        pytest.param(
            replace(HERE, ended_at=LATER, final=False),
            replace(HERE, host="there", attempt=1),
            "there",
            id="a later attempt, though that host's clock is behind",
        ),
    ],
)
def test_of_each_job_the_newest_is_listed_once(local, mirrored, kept):
    assert [record.host for record in merged([local], [mirrored], limit=9)] == [kept]


some_records = st.lists(
    st.builds(
        a_record,
        number=st.integers(0, 4),
        attempt=st.integers(0, 1),
        final=st.booleans(),
        job_id=st.sampled_from("abcd"),
        outcome=st.sampled_from(Outcome),
    ),
    max_size=12,
)


@settings(max_examples=80, database=None)
@given(some_records, some_records, st.integers(1, 5))
def test_merged_is_newest_of_all_then_filtered_then_sorted_then_cut(local, mirrored, limit):
    def wanted(record):
        return record.outcome is Outcome.FAILED

    found = merged(local, mirrored, limit=limit, wanted=wanted)

    best = [
        max((one for one in [*local, *mirrored] if one.job_id == job_id), key=order)
        for job_id in {one.job_id for one in [*local, *mirrored]}
    ]
    # Equal news may differ in what is no part of the order; whoever is first wins.
    expected = sorted([(position_ms(one), one.job_id) for one in best], reverse=True)
    everything = merged(local, mirrored, limit=99)
    assert [(position_ms(one), one.job_id) for one in everything] == expected
    assert found == [one for one in everything if wanted(one)][:limit]


def test_the_four_answers_are_told_apart_in_words_and_for_programs():
    standings = [merging.OK, merging.TRUNCATED, merging.OFF, merging.unreachable("no-answer")]

    assert {standing.degraded for standing in standings} == set(Degraded)
    assert [str(standing) for standing in standings] == ["ok", "truncated", "off", "unreachable (no-answer)"]
    sentences = [merging.sentence(standing) for standing in standings]
    assert len(set(sentences)) == 4
    assert all(said.startswith("This host only") for said in sentences[2:])
    assert "no-answer" in sentences[3]


def test_runs_of_one_instant_are_in_one_order():
    same = [a_record(number, ended_at=NOON) for number in range(5)]

    assert merged(same, [], limit=5) == merged([], same[::-1], limit=5) == same[::-1]
