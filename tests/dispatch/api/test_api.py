"""The read API: who is answered, in which shapes, and what is said when something is away."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import OperationalError, connection, transaction
from django.test import Client, override_settings

from dispatch.api import tokens
from dispatch.models import ApiToken
from runs import rows
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import Host, everything
from tests.harness.records import a_record

PATHS = ("/api/status", "/api/fleet", "/api/queue", "/api/runs", "/metrics")
CANARY = "canary-6f1d"


def bearer(user, *, lifetime=None, now=None, name="t"):
    token = tokens.create(name, user=user, lifetime=lifetime, now=now or datetime.now(UTC))
    return {"authorization": f"Bearer {token}"}


def error_of(response):
    assert response["Content-Type"] == "application/json"
    assert "Location" not in response
    assert "no-store" in response["Cache-Control"]
    return response.status_code, response.json()["error"]["code"]


@contextmanager
def reading_only():
    """The database takes no writes."""
    is_sqlite = connection.vendor == "sqlite"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = 1" if is_sqlite else "SET LOCAL transaction_read_only = on")
        yield
        if is_sqlite:
            cursor.execute("PRAGMA query_only = 0")
        transaction.set_rollback(True)


@pytest.mark.parametrize("path", PATHS)
def test_a_token_or_a_session_that_may_is_answered_and_reading_changes_nothing(
    path, here, viewer, browser, valkey
):
    Host(valkey).enqueue("a-1", "a-2")
    before = everything(valkey)

    by_token = Client().get(path, headers=bearer(viewer))
    by_session = browser.get(path)

    assert (by_token.status_code, by_session.status_code) == (200, 200)
    assert not any(name.startswith("Access-Control") for name in by_token.headers)
    assert by_token["X-Content-Type-Options"] == "nosniff"
    assert everything(valkey) == before
    assert ApiToken.objects.get(name="t").last_used_on == datetime.now(UTC).date()


def others(viewer):
    now = datetime.now(UTC)
    nobody = User.objects.create_user("nobody")
    gone = User.objects.create_user("gone", is_active=False)
    for one in (nobody, gone):
        one.user_permissions.add(Permission.objects.get(codename="view_schedule"))
    return {
        "none": ({}, (401, "not-authenticated")),
        "of another kind": ({"authorization": "Basic eDp5"}, (401, "not-authenticated")),
        "empty": ({"authorization": "Bearer "}, (401, "not-authenticated")),
        "unknown": ({"authorization": "Bearer \u00e9" + "x" * 4000}, (401, "not-authenticated")),
        "over": (
            bearer(viewer, lifetime=timedelta(days=1), now=now - timedelta(days=1), name="old"),
            (401, "not-authenticated"),
        ),
        "of somebody inactive": (bearer(gone, name="gone"), (401, "not-authenticated")),
        "of somebody without the permission": (bearer(nobody, name="nobody"), (403, "forbidden")),
    }


@pytest.mark.parametrize("path", PATHS)
def test_everybody_else_is_refused_in_json(path, here, viewer, browser):
    for headers, expected in others(viewer).values():
        assert error_of(Client().get(path, headers=headers)) == expected
        if headers and expected[0] == 401:
            # A wrong token is not made good by a session that comes along.
            assert error_of(browser.get(path, headers=headers)) == expected


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("post", "/api/status", (405, "method-not-allowed")),
        ("delete", "/api/runs", (405, "method-not-allowed")),
        ("get", "/api/status/", (404, "not-found")),
        ("get", "/api", (404, "not-found")),
        ("get", "/api/nothing/../here", (404, "not-found")),
        ("get", "/api/status?a=1", (400, "bad-request")),
        ("get", "/api/queue?queue=rq:all", (400, "bad-request")),
        ("get", "/api/queue?limit=51", (400, "bad-request")),
        ("get", "/api/queue?queue=pi-jobs&queue=pi-jobs@a&limit=51", (400, "bad-request")),
        ("get", "/api/queue?queue=pi-jobs&limit=1001", (400, "bad-request")),
        ("get", "/api/runs?limit=0", (400, "bad-request")),
        ("get", "/api/runs?limit=\u0663", (400, "bad-request")),
        ("get", "/api/runs?next=x", (400, "bad-request")),
        ("get", "/api/runs?hots=alpha", (400, "bad-request")),
        ("get", "/api/runs?since=yesterday", (400, "bad-request")),
        ("get", "/api/runs?older_than=1~x", (400, "bad-request")),
        ("get", "/api/runs?q=%00", (400, "bad-request")),
        ("get", f"/api/runs?q={'x' * 301}", (400, "bad-request")),
    ],
)
def test_what_makes_no_sense_is_refused_in_json(method, path, expected, here, viewer):
    client = Client(enforce_csrf_checks=True)

    assert error_of(getattr(client, method)(path, headers=bearer(viewer))) == expected


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "outcome=foo",
            "“foo” is no outcome that this version knows; allowed are completed, policy, failed.",
        ),
        ("since=foo", "“foo” (since) is no instant; write 24h, 7d, 2026-11-30 or 2026-11-30 12:00 (UTC)."),
    ],
)
def test_a_filter_that_no_run_can_meet_is_refused_with_what_is_allowed(asked, said, here, viewer):
    answer = Client().get(f"/api/runs?{asked}", headers=bearer(viewer))

    assert error_of(answer) == (400, "bad-request")
    assert answer.json()["error"]["message"].startswith(said)


def test_a_foreign_name_of_this_host_is_refused_in_json():
    assert error_of(Client(headers={"host": "evil.example"}).get("/api/status")) == (400, "bad-request")


@pytest.mark.parametrize("path", PATHS[:3])
@pytest.mark.parametrize("url", [NOBODY, "nonsense", "embedded"])
def test_without_valkey_the_answer_says_so_and_names_no_place(path, url, here, viewer, tmp_path):
    with override_settings(PIDISPATCH_ENVIRONMENT={**here, "VALKEY_URL": url}):
        response = Client().get(path, headers=bearer(viewer))

    assert error_of(response) == (503, "valkey-unavailable")
    assert response["Retry-After"]
    assert str(tmp_path) not in response.content.decode()


def test_without_the_database_the_answer_says_so(here, viewer, monkeypatch, events):
    headers = bearer(viewer)

    def fails(*_args, **_kwargs):
        raise OperationalError(f"could not connect to {CANARY}")

    with monkeypatch.context() as patched:
        patched.setattr(connection, "cursor", fails)
        response = Client().get("/api/runs", headers=headers)

    assert error_of(response) == (503, "database-unusable")
    assert CANARY not in response.content.decode() + str(events())


def test_a_database_that_takes_no_writes_costs_only_the_note_of_the_use(here, viewer):
    headers = bearer(viewer)
    with reading_only():
        response = Client().get("/api/runs", headers=headers)

    assert response.status_code == 200
    assert ApiToken.objects.get(name="t").last_used_on is None


def test_what_the_commands_show_is_answered(here, viewer, valkey):
    appear(valkey, "alpha")
    host = Host(valkey)
    host.enqueue(*(f"a-{number}" for number in range(52)))
    host.start()
    headers = bearer(viewer)

    def ask(path):
        return Client().get(path, headers=headers).json()

    assert {"waiting": 51, "active": 1}.items() <= ask("/api/status").items()
    assert [one["name"] for one in ask("/api/fleet")["hosts"]] == ["alpha"]
    for asked, jobs in {"?queue=pi-jobs&limit=1": 1, "?queue=pi-jobs": 20, "": 20, "?limit=50": 50}.items():
        shared = ask(f"/api/queue{asked}")["queues"][0]
        assert (shared["waiting"]["total"], len(shared["waiting"]["jobs"])) == (51, jobs)
        assert len(shared["running"]["jobs"]) == 1


def test_runs_are_paged_by_key_and_filtered_as_the_list_is(here, viewer, django_assert_max_num_queries):
    records = [
        a_record(number, job_id=f"r-{number}", host="ab"[number % 2], target=f"local:{CANARY}")
        for number in range(7)
    ]
    rows.write(records)
    headers = bearer(viewer)

    def ask(path):
        with django_assert_max_num_queries(15):
            response = Client().get(path, headers=headers)
        assert CANARY not in response.content.decode()
        return response.json()

    seen, following = [], ""
    while following is not None:
        found = ask(f"/api/runs?limit=3&host=b{f'&next={following}' if following else ''}")
        seen += found["runs"]
        following = found["next"]
    assert [one["jobId"] for one in seen] == ["r-5", "r-3", "r-1"]
    assert {one["host"] for one in seen} == {"b"}
    assert [one["jobId"] for one in ask("/api/runs?limit=2")["runs"]] == ["r-6", "r-5"]
    assert [one["jobId"] for one in ask("/api/runs?until=2026-01-05T12:00:15")["runs"]] == ["r-1", "r-0"]
    found = ask("/api/runs?q=r-&limit=2")
    assert (len(found["runs"]), found["next"], found["cut"]) == (2, None, True)
    assert found["notice"].startswith("This host only: ")
