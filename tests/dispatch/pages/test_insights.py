"""The insights page: who sees it, what it says of a span, and that what an agent named is text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from dispatch.pages.insights_asked import By, Order, Span, read
from dispatch.pages.insights_charts import part_chart, periods
from dispatch.pages.insights_table import LISTED_BY, name_of
from runs import rollups, rows
from runs.models import RollupState, Run
from runs.outcome import Outcome
from runs.rollups import Part
from runs.walk import NONE, Facet
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.queuekit import everything
from tests.harness.records import a_record

PAGE = "/admin/insights/"
NOW = datetime(2026, 11, 30, 12, 34, 56, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script>=cmd\x1b[31m'


def ago(number=0, **fields):
    """A run that ended so many hours ago."""
    ended = (datetime.now(UTC) - timedelta(hours=number)).replace(microsecond=0)
    spans = {"queued_at": ended - timedelta(minutes=4), "started_at": ended - timedelta(minutes=3)}
    return a_record(number, **{"ended_at": ended, **spans, **fields})


@pytest.fixture
def carol(client, db, valkey_url):
    """Somebody who may view the fleet and its runs, logged in."""
    user = User.objects.create_user("carol", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=["view_fleet", "view_run"]))
    client.force_login(user)
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url}):
        yield user


def text_of(response):
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_it_is_for_those_who_may_view_and_changes_nothing(client, carol, valkey):
    rows.write([ago()])
    before = everything(valkey), list(Run.objects.values())
    assert client.get(PAGE).status_code == 200
    assert client.post(PAGE, {"span": "7d"}).status_code == 405
    assert (everything(valkey), list(Run.objects.values())) == before
    client.force_login(User.objects.create_user("nobody", is_staff=True))
    assert client.get(PAGE).status_code == 403
    client.logout()
    assert "/login/" in client.get(PAGE)["Location"]


@pytest.mark.parametrize("given", [{}, {"span": "24h", "by": "end"}, {"span": "400d", "order": "cost"}])
def test_a_page_is_a_handful_of_statements_and_says_the_figures(client, carol, given):
    rows.write([ago(), ago(1, outcome=Outcome.FAILED, reason="stalled"), ago(2, outcome=Outcome.POLICY)])

    with CaptureQueriesContext(
        connection,
    ) as asked:
        text = text_of(client.get(PAGE, given))

    assert len(asked) <= 12
    assert "Runs 3 1 completed, 1 policy, 1 failed before: none" in text
    assert "Success 50 % completed of completed and failed" in text
    assert "Cost $1.24 $0.41 a run" in text
    assert "Tokens 373,560 57,300 in, 7,260 out, 309,000 cached" in text
    assert "median; p95" in text
    if given.get("by") == "end":
        assert "Failed, stalled Its worker vanished while it ran" in text
    else:
        assert re.search(r"audit 3 1 1 1 50 % \$1\.24 57,300 7,260 309,000 ", text)


def test_what_an_agent_named_is_text_everywhere(client, carol):
    rows.write([ago(flow=HOSTILE, model=HOSTILE, host=HOSTILE, trigger_type=HOSTILE, kind=HOSTILE)])

    for by in By:
        page = client.get(PAGE, {"by": by.value, "span": HOSTILE, "order": "'\"<"}).content.decode()
        assert "<script>alert" not in page
        assert 'href="javascript' not in page
        assert "\x1b" not in page
        assert "“span” may be 24h, 7d, 30d, 90d, 400d; it was left out." in page
    flows = client.get(PAGE).content.decode()
    assert escape(HOSTILE.replace("\x1b", " ")) in flows
    assert "flow=%22%3E%3Cscript%3E" in flows


def test_without_valkey_without_runs_and_before_the_worker_counted_it_says_so(client, carol):
    RollupState.objects.create(recount_before=2**40)
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": NOBODY}):
        text = text_of(client.get(PAGE))
    assert "No run ended in this span." in text
    assert "No run has been counted yet: the worker does it at its start." in text
    RollupState.objects.update(recount_before=rollups.floor_hour(NOW))
    assert "Runs before 2026-11-30 12:00:00 UTC have not been counted yet" in text_of(client.get(PAGE))


def test_who_may_not_see_runs_gets_no_address_of_them(client, carol):
    rows.write([ago()])
    assert "/runs/run/?flow=audit&amp;since=" in client.get(PAGE).content.decode()
    by_end = client.get(PAGE, {"by": "end"}).content.decode()
    assert "/runs/run/?outcome=completed&amp;reason=-&amp;since=" in by_end
    assert {*LISTED_BY, "outcome", "reason"} == set(Facet)
    assert NONE == "-"
    carol.user_permissions.remove(Permission.objects.get(codename="view_run"))
    assert "/runs/run/" not in client.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("given", "since", "until", "problem"),
    [
        pytest.param({}, "2026-11-01 00", "2026-11-30 13", "", id="30 days"),
        pytest.param({"span": "24h"}, "2026-11-29 13", "2026-11-30 13", "", id="24 hours"),
        pytest.param({"span": "400d"}, "2025-10-27 00", "2026-11-30 13", "", id="400 days"),
        pytest.param(
            {"from": "2026-11-02", "to": "2026-11-03"}, "2026-11-02 00", "2026-11-04 00", "", id="dates"
        ),
        pytest.param({"from": "2026-11-29"}, "2026-11-29 00", "2026-11-30 13", "", id="up to now"),
        pytest.param({"to": "2026-11-03"}, "2026-11-03 00", "2026-11-04 00", "", id="one day"),
        pytest.param(
            {"to": "2099-01-01"}, "2026-11-30 00", "2026-11-30 13", "", id="the future is not there"
        ),
        pytest.param(
            {"from": "2026-11-09", "to": "2026-11-03"},
            "2026-11-03 00",
            "2026-11-04 00",
            "ends before",
            id="turned",
        ),
        pytest.param(
            {"from": "1999-01-01"}, "2025-10-27 00", "2026-11-30 13", "longer than 400 days", id="too long"
        ),
        pytest.param(
            {"from": "20261101xx"}, "2026-11-01 00", "2026-11-30 13", "“from” is no date", id="no date"
        ),
        pytest.param({"to": "0001-01-01"}, "2026-11-01 00", "2026-11-30 13", "“to” is no date", id="too old"),
        pytest.param({"span": "1y"}, "2026-11-01 00", "2026-11-30 13", "“span” may be", id="no span"),
    ],
)
def test_a_span_is_of_whole_hours_or_days_and_what_was_not_understood_is_said(given, since, until, problem):
    asked = read(given, NOW)

    assert (f"{asked.since:%Y-%m-%d %H}", f"{asked.until:%Y-%m-%d %H}") == (since, until)
    assert problem in " ".join(asked.problems)
    assert bool(problem) == bool(asked.problems)
    again = read(asked.parameters, NOW)
    assert (again.since, again.until, again.problems) == (asked.since, asked.until, ())


def test_many_days_are_drawn_as_weeks_and_of_many_values_the_greatest():
    asked = read({"span": Span.YEAR.value, "order": Order.FAILED.value}, NOW)
    one = rollups.together([])
    days = [(asked.since + timedelta(days=day), one) for day in range(400)]
    weeks = periods(days, asked)
    assert len(weeks) == 58
    assert all(start.weekday() == 0 for start, _ in weeks[1:])

    chart = part_chart([Part(f"f{number}", one) for number in range(13)] + [Part(None, one)], asked)
    assert (len(chart.labels), chart.labels[-1]) == (12, "f11")
    assert chart.title == "Failed by flow, the 12 greatest"


@pytest.mark.parametrize(
    ("value", "by", "name"),
    [
        (None, By.FLOW, "all others"),
        ("", By.MODEL, "none"),
        ("failed/stalled", By.END, "Failed, stalled"),
        ("completed/", By.END, "Completed"),
        ("a\nb" + "x" * 200, By.FLOW, "a b" + "x" * 77),
    ],
)
def test_a_value_has_a_name_for_a_person(value, by, name):
    assert name_of(value, by) == name
