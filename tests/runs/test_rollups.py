"""What the rollups say is what the rows said: whatever is written, replaced, removed and counted anew."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import pairwise

import pytest
from django.apps import apps
from django.db import connection, connections
from hypothesis import given, settings
from hypothesis import strategies as st

from runs import retention, rollup_recount, rollup_store, rollups, rows
from runs.models import Rollup, RollupState, Run
from runs.outcome import Outcome
from runs.record import Attempt, order
from runs.rollup_figures import BOUNDS_SECONDS, COLUMNS, NEEDED, Dimension, Order, quantile
from runs.rollup_periods import DAY, HOURS_KEPT, Grain, cover, floor_hour, hours_kept_from, instant
from runs.rollup_tally import Key, count, widened
from tests.harness.records import NOON, a_record, records

NOW = datetime.now(UTC)
TODAY = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
END = TODAY + timedelta(days=2)


def at(number=0, *, days_ago=1, **fields):
    """The `number`-th run of a day not long ago: single hours are kept of it."""
    shift = TODAY - timedelta(days=days_ago) + timedelta(hours=12) - NOON
    record = a_record(number, **fields)
    moments = {name: getattr(record, name) for name in ("queued_at", "started_at", "ended_at")}
    return replace(record, **{name: moment + shift for name, moment in moments.items() if name not in fields})


def held(*grains):
    """The rollups of these grains by key; those that have become nothing are as if they were not there."""
    found = {}
    for grain, start, dimension, value, rest, *figures in Rollup.objects.filter(grain__in=grains).values_list(
        *Key._fields, *COLUMNS
    ):
        if any(figures):
            key = Key(Grain(grain), start, Dimension(dimension), value, rest)
            found[key] = {name: figure for name, figure in zip(COLUMNS, figures, strict=True) if figure}
    return found


def counted_from_rows():
    """What they should be, by the rows that there are."""
    tally = {}
    for row in Run.objects.values(*NEEDED):
        count(tally, row)
    tally = widened(tally, tuple(Grain))
    plain = {key: {name: figure for name, figure in f.items() if figure} for key, f in tally.items()}
    return {key: figures for key, figures in plain.items() if figures}


def test_however_rows_are_written_and_replaced_the_rollups_say_what_the_rows_say(db):
    some_jobs = st.lists(
        st.lists(records(st.sampled_from("abc")), min_size=2, max_size=5), min_size=2, max_size=4
    )

    @settings(max_examples=8, database=None)
    @given(some_jobs)
    def write(batches):
        for model in (Run, Rollup, RollupState):
            model.objects.all().delete()
        for batch in batches:
            rows.write(batch)
        wanted = counted_from_rows()
        assert held(Grain.HOUR, Grain.DAY, Grain.MONTH) == wanted

        Rollup.objects.all().delete()
        rollup_recount.ask()
        rollup_recount.finish(NOW)
        assert held(Grain.DAY, Grain.MONTH) == {k: f for k, f in wanted.items() if k.grain != Grain.HOUR}

    write()


def test_a_batch_that_has_a_job_twice_counts_it_once(db):
    first, second = at(attempt=0, outcome=Outcome.FAILED), at(attempt=1)

    assert rows.write([second, first, second]) == [None] * 3

    assert (rollups.totals(TODAY - timedelta(days=2), END).runs, order(first) < order(second)) == (1, True)


def test_what_will_be_tried_again_is_counted_when_it_has_ended_with_all_that_it_used(db):
    tokens = {"input": 10, "output": 5, "total": 15, "cost": 0.5}
    failed = at(final=False, outcome=Outcome.FAILED, tokens=tokens, usage=None)
    rows.write([failed])
    assert rollups.lifetime().jobs == {}

    earlier = Attempt(
        started_at=failed.queued_at + timedelta(seconds=3),
        ended_at=failed.ended_at,
        outcome=Outcome.FAILED,
        tokens=tokens,
    )
    rows.write([at(attempt=1, attempts=(earlier,), tokens=tokens, usage=None)])

    found = rollups.totals(TODAY - timedelta(days=1), END)
    assert (found.completed, found.failed, found.cost, found.tokens_total) == (1, 0, 1.0, 30)
    # It waited for its first attempt, and ran as long as its last.
    assert (found.waited_seconds, found.took_seconds) == (3, 180)


def test_money_and_tokens_go_to_the_model_that_took_them(db):
    rows.write([at(), at(1, usage=None, model=None)])

    found = {
        part.value: part.totals
        for part in rollups.parts(Dimension.MODEL, TODAY - timedelta(days=1), END, by=Order.COST)
    }

    assert {name: (t.runs, t.cost, t.tokens_total) for name, t in found.items()} == {
        "claude-sonnet-x": (1, 0.4125, 123_500),
        "claude-haiku-x": (0, 0.0011, 1_020),
        "": (1, 0.4136, 124_520),
    }


def test_rows_that_retention_removes_stay_counted_whatever_is_counted_anew(db):
    rows.write([at(number, days_ago=50) for number in range(4)] + [at(5, days_ago=3)])
    before = held(Grain.DAY, Grain.MONTH, Grain.EVER)

    assert retention.prune_rows(days=40, now=NOW) == 4
    rows.restore([at(0, days_ago=50), at(6, days_ago=3)])
    rollup_recount.ask()
    rollup_recount.finish(NOW)

    assert rollups.totals(TODAY - timedelta(days=51), TODAY - timedelta(days=49)).runs == 4
    assert rollups.totals(TODAY - timedelta(days=3), END).runs == 2
    assert rollups.lifetime().totals.runs == 6
    day = Key(Grain.DAY, floor_hour(TODAY - timedelta(days=50)), Dimension.FLOW, "audit")
    assert held(Grain.DAY)[day] == before[day]


def test_hours_are_kept_for_some_weeks_and_their_days_for_ever(db):
    rows.write([at(days_ago=60), at(1)])

    retention.prune_rows(days=0, now=NOW)

    assert {key.start for key in held(Grain.HOUR)} == {floor_hour(at(1).ended_at)}
    assert rollups.totals(TODAY - timedelta(days=60), END).runs == 2


def test_rows_older_than_the_rollups_are_counted_by_the_worker_at_its_start(db):
    rows.restore([at(), at(1, days_ago=90, final=False), at(2, days_ago=90)])
    migration = import_module("runs.migrations.0003_rollups")
    migration.count_what_is_there(apps, connection.schema_editor())
    assert rollups.recounted_from() is not None
    # What comes before the worker has counted the day is counted once all the same.
    rows.write([at(1, days_ago=90, attempt=1), at(3)])

    retention.prune_rows(days=0, now=NOW)

    assert held(Grain.DAY, Grain.MONTH) == {
        key: figures for key, figures in counted_from_rows().items() if key.grain != Grain.HOUR
    }
    assert (rollups.recounted_from(), rollups.lifetime().totals.runs) == (None, 4)


def test_what_ever_was_never_gets_less(db):
    rows.write([at(outcome=Outcome.FAILED, reason="stalled")])
    rows.write([at(attempt=1)])

    assert rollups.totals(TODAY - timedelta(days=1), END).failed == 0
    assert rollups.lifetime().jobs == {("failed", "stalled"): 1}

    Run.objects.all().delete()
    rollup_recount.ask()
    rollup_recount.finish(NOW)
    assert rollups.totals(TODAY - timedelta(days=1), END).runs == 0
    assert rollups.lifetime().jobs == {("failed", "stalled"): 1}


def test_values_beyond_the_most_are_counted_together(db, monkeypatch):
    monkeypatch.setattr(rollup_store, "MOST_VALUES", 2)
    flows = "abcabcdd"
    for number, flow in enumerate(flows):
        rows.write([at(number, flow=flow)])

    found = rollups.parts(Dimension.FLOW, TODAY - timedelta(days=1), END, most=1)

    assert [(part.value, part.totals.runs) for part in found] == [("a", 2), (None, 6)]
    assert rollups.totals(TODAY - timedelta(days=1), END).runs == len(flows)
    # A run that leaves the rest is taken from the rest.
    rows.write([at(7, flow="a", attempt=1)])
    found = rollups.parts(Dimension.FLOW, TODAY - timedelta(days=1), END)
    assert [(part.value, part.totals.runs) for part in found] == [("a", 3), ("b", 2), (None, 3)]


def test_hours_and_days_without_runs_are_there_too(db):
    rows.write([at(), at(1, outcome=Outcome.FAILED), at(2, outcome=Outcome.POLICY, exit_code=None)])

    hours = rollups.hours(TODAY - timedelta(days=1), TODAY)
    days = rollups.days(TODAY - timedelta(days=2), TODAY)

    assert [(h.completed, h.policy, h.failed) for h in hours if h.start.hour == 12] == [(1, 1, 1)]
    assert (len(hours), sum(hour.completed + hour.policy + hour.failed for hour in hours)) == (24, 3)
    assert [(start, totals.runs) for start, totals in days] == [
        (TODAY - timedelta(days=2), 0),
        (TODAY - timedelta(days=1), 3),
    ]
    # What was refused did not run: it took no time. All of them waited.
    assert (sum(days[1][1].took), sum(days[1][1].waited), days[1][1].success) == (2, 3, 0.5)


def test_two_writers_at_once_lose_nothing(transactional_db):
    def write(first):
        for attempt in range(6):
            rows.write([at(number, attempt=attempt * 2 + first, flow=f"f{attempt}") for number in range(8)])
        connections.close_all()

    threads = [threading.Thread(target=write, args=(first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert held(Grain.HOUR, Grain.DAY, Grain.MONTH) == counted_from_rows()


hours = st.integers(*(floor_hour(datetime(year, 3, 10, tzinfo=UTC)) for year in (2019, 2021)))


@settings(max_examples=80, database=None)
@given(hours, hours, hours)
def test_a_span_is_covered_once_by_whole_periods(one, other, now):
    since, until = sorted((one, other))
    hours_from = hours_kept_from(instant(now))

    stretches = cover(since, until, hours_from=hours_from)

    edges = [(stretch.start, stretch.end) for stretch in stretches]
    assert all(end == start for (_, end), (start, _) in pairwise(edges))
    if since < until:
        assert edges[0][0] == (since if since >= hours_from else since // DAY * DAY)
        assert edges[-1][1] == (until if until >= hours_from else -(-until // DAY) * DAY)
    for stretch in stretches:
        assert stretch.grain != Grain.HOUR or stretch.start >= hours_from
        for edge in (instant(stretch.start), instant(stretch.end)):
            assert stretch.grain == Grain.HOUR or edge.hour == 0
            assert stretch.grain != Grain.MONTH or edge.day == 1
    assert sum(stretch.grain == Grain.DAY for stretch in stretches) <= 2
    assert hours_from == (now - HOURS_KEPT) // DAY * DAY


@pytest.mark.parametrize(
    ("buckets", "share", "seconds"),
    [
        pytest.param({}, 0.5, None, id="no runs"),
        pytest.param({0: 4}, 0.5, 0.5, id="within the first"),
        pytest.param({5: 10}, 0.5, 45, id="halfway between 30 and 60"),
        pytest.param({5: 95, 9: 5}, 0.95, 60, id="at a bound"),
        pytest.param({0: 1, len(BOUNDS_SECONDS): 9}, 0.95, BOUNDS_SECONDS[-1], id="beyond the last"),
    ],
)
def test_a_quantile_is_estimated_within_its_bucket(buckets, share, seconds):
    counts = [buckets.get(place, 0) for place in range(len(BOUNDS_SECONDS) + 1)]

    assert quantile(counts, share) == seconds
