"""The insights page: who sees it, what it says of a span, and that nothing written by an agent leaves its place."""

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
from dispatch.pages.insights_view import name_of, part_chart, periods
from runs import rollups, rows
from runs.models import RollupState, Run
from runs.outcome import Outcome
from runs.rollups import Part
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
