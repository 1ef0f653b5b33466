"""The order of a reading: pages have every job once, however jobs change their section between them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch.queue.turns import Turn, is_between, last_of_page


def turns(*ages):
    return [Turn(age, "0" * 32) for age in ages]


@pytest.mark.parametrize(
    ("sections", "after", "limit", "last"),
    [
        pytest.param([], None, 2, None, id="nothing"),
        pytest.param([turns(5, 1)], None, 2, None, id="all fits"),
        pytest.param([turns(5, 1, 3)], None, 2, 3, id="the first of one section"),
        pytest.param([turns(5, 1, 3)], 1, 2, None, id="the rest fits"),
        pytest.param([turns(1, 2, 3), turns(7, 8, 9), []], None, 2, 2, id="what has more jobs early decides"),
        pytest.param([turns(1, 2, 3), turns(7, 8, 9)], 2, 2, 8, id="then another"),
        pytest.param([turns(1, 2), turns(7, 8)], 9, 2, None, id="beyond the end"),
    ],
)
def test_where_a_page_ends(sections, after, limit, last):
    after = after and turns(after)[0]

    assert last_of_page(sections, after=after, limit=limit) == (last and turns(last)[0])


@pytest.mark.parametrize(
    "text", ["", "1", "1~", "~", "-1~" + "0" * 32, "1~" + "G" * 32, "1~" + "0" * 31, "1~" + "0" * 32 + "\n"]
)
def test_what_is_no_turn_is_none(text):
    assert Turn.parse(text) is None


@settings(max_examples=60, deadline=None)
@given(
    ages=st.lists(st.integers(0, 6), max_size=40),
    limit=st.integers(1, 5),
    moves=st.lists(st.lists(st.integers(0, 3), min_size=40, max_size=40), min_size=1, max_size=5),
)
def test_jobs_that_go_between_sections_are_read_once(ages, limit, moves):
    """`moves`: after each page the sections where the jobs stand; many were queued in the same instant."""
    jobs = [Turn.of(age, b"job-%d" % number) for number, age in enumerate(ages)]
    read, after, page = Counter(), None, 0
    while True:
        where = moves[page % len(moves)]
        sections = [[job for job, at in zip(jobs, where, strict=False) if at == one] for one in range(4)]
        last = last_of_page(sections, after=after, limit=limit)
        shown = [[job for job in section if is_between(job, after, last)] for section in sections]
        assert max(map(len, shown)) <= limit
        read.update(job for section in shown for job in section)
        page += 1
        assert page <= len(jobs) + 1
        if last is None:
            break
        after = Turn.parse(last.written)
        assert after == last

    assert read == Counter(jobs)
