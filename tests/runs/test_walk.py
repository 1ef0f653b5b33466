"""Pages of runs against the same question asked of a list: no run is missed, none shown twice."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from runs import history, rows, walk
from runs.outcome import Outcome
from runs.record import Record, position_ms
from runs.walk import NONE, Facet, Key, Query
from tests.harness.records import NOON, a_record

pytestmark = pytest.mark.django_db
VALUES = {
    Facet.HOST: ("build-1", "build-2", "nobody", NONE),
    Facet.REASON: ("stalled", "deadline", NONE),
    Facet.FLOW: ("audit", "Fix", NONE),
    Facet.MODEL: ("sonnet", "haiku"),
    Facet.KIND: ("local", "github"),
    Facet.OUTCOME: ("completed", "failed"),
}


def some_runs(rng: random.Random) -> list[Record]:
    def value(facet: Facet) -> str | None:
        chosen = rng.choice(VALUES[facet])
        return None if chosen == NONE else chosen

    return [
        a_record(
            # Several end in the same instant.
            job_id=f"{rng.choice('abAB')}{number}",
            ended_at=NOON + timedelta(seconds=rng.randrange(20)),
            **{facet.value: value(facet) for facet in Facet if facet is not Facet.OUTCOME},
            outcome=Outcome(value(Facet.OUTCOME)),
        )
        for number in range(60)
    ]


def a_question(rng: random.Random) -> Query:
    start = NOON.timestamp() * 1000
    since, until = (int(start + 1000 * rng.randrange(20)) if rng.random() < 0.3 else None for _ in range(2))
    facets = rng.sample(list(Facet), rng.choice((0, 1, 2, 3, 6)))
    return Query(
        facets={facet: rng.choice(VALUES[facet]) for facet in facets}, since_ms=since, until_ms=until
    )


def right(query: Query, records: list[Record]) -> list[str]:
    """The ids asked for, newest first; of one instant in any order, which is the database's own."""
    found = [
        record
        for record in records
        if all((getattr(record, facet) or NONE) == value for facet, value in query.facets.items())
        and (query.since_ms is None or position_ms(record) >= query.since_ms)
        and (query.until_ms is None or position_ms(record) < query.until_ms)
    ]
    return [one.job_id for one in sorted(found, key=position_ms, reverse=True)]


def ids_of(query: Query, *, upwards: bool = False) -> list[str]:
    """Follow the pages to the end, the pages of a way up read backwards."""
    found: list[str] = []
    for _ in range(200):
        page = history.page(query, size=7)
        ids = [run.job_id for run in page.runs]
        found += ids[::-1] if upwards else ids
        beyond = page.newer if upwards else page.older
        if beyond is None:
            return found
        query = replace(query, **{"newer_than" if upwards else "older_than": beyond})
    pytest.fail("the pages do not end")


@pytest.mark.parametrize("farthest", [4, 30_000])
@pytest.mark.parametrize("seed", range(3))
def test_pages_lead_through_every_run_that_is_asked_for_once_down_and_up(seed, farthest, monkeypatch):
    monkeypatch.setattr(walk, "FARTHEST", farthest)
    rng = random.Random(seed)
    records = some_runs(rng)
    rows.write(records)

    for _ in range(15):
        query = a_question(rng)
        expected = right(query, records)
        down = ids_of(query)
        up = ids_of(replace(query, newer_than=Key(-1, "")), upwards=True)

        assert sorted(down) == sorted(expected), query
        assert up[::-1] == down, query
        instants = {record.job_id: position_ms(record) for record in records}
        assert [instants[one] for one in down] == [instants[one] for one in expected], query
        exported = [key.job_id for keys in history.stretches(query, size=9) for key in keys]
        assert exported == down, query


def test_a_walk_that_ends_early_says_how_far_it_came_and_its_neighbour_goes_on(monkeypatch):
    monkeypatch.setattr(walk, "FARTHEST", 10)
    rows.write([a_record(number, kind="local" if number else "github", host="h") for number in range(25)])
    rows.write([a_record(100 + number, kind="github", host="other") for number in range(25)])
    query = Query(facets={Facet.HOST: "h", Facet.KIND: "github"})

    first = history.page(query)

    assert (first.runs, first.looked_to, first.newer) == ([], first.older, None)
    assert first.older == Key(position_ms(a_record(15)), a_record(15).job_id)
    assert ids_of(query) == [a_record(0).job_id]
    beyond = history.page(replace(query, older_than=Key(-1, "")))
    assert (beyond.runs, beyond.older, beyond.newer) == ([], None, Key(-1, ""))


def test_the_facet_with_few_runs_is_walked_though_another_should_be_choosier(monkeypatch):
    monkeypatch.setattr(walk, "FARTHEST", 10)
    rows.write([a_record(number, host="h") for number in range(30)])
    rows.write([a_record(40, host="h", outcome=Outcome.FAILED)])
    rows.write([a_record(number, host="h") for number in range(50, 80)])

    page = history.page(Query(facets={Facet.HOST: "h", Facet.OUTCOME: "failed"}))

    assert [run.job_id for run in page.runs] == [a_record(40).job_id]
    assert page.looked_to is None


def test_children_are_the_newest_of_a_parent():
    rows.write([a_record(number, parent_job_id="p" if number % 2 else None) for number in range(9)])

    assert [run.job_id for run in history.children("p", size=2)] == [a_record(7).job_id, a_record(5).job_id]


def test_choices_are_the_values_of_each_facet_in_one_statement(django_assert_num_queries):
    rows.write([a_record(number, host=f"h{number % 3}", flow=None) for number in range(9)])

    with django_assert_num_queries(1):
        found = history.choices([Facet.HOST, Facet.FLOW, Facet.KIND])

    assert found == {Facet.HOST: ["h0", "h1", "h2"], Facet.FLOW: [], Facet.KIND: ["local"]}
