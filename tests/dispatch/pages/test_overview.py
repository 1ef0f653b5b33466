"""The overview and the banner: who may see them, what they say, and what they say when something is away."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from dispatch.console.findings import Area
from dispatch.pages import overview_reading
from dispatch.pages.doctor_rounds import Rounds
from hosts import keys, switches
from pidispatch_site import conf
from runs import rows
from runs.outcome import Outcome
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import Host, everything
from tests.harness.records import a_record

PARTS = {"now", "history", "care"}
PAGES = ("/admin/banner/", *(f"/admin/overview/{name}/" for name in sorted(PARTS)))
DOCTOR = (
    Area("waits").failed(
        "profile", "/srv/hidden-place/t.json: line 3 <b>", "Mend /srv/hidden-place/t.json, `doctor` tells"
    ),
    Area("engine").ok("answers", "the engine answers"),
)


@pytest.fixture(autouse=True)
def rounds(monkeypatch):
    """A doctor who finds one thing at once."""
    made = Rounds(lambda environment: DOCTOR)
    monkeypatch.setattr(overview_reading, "ROUNDS", made)
    return made


@pytest.fixture
def seen(client, db, valkey, valkey_url, tmp_path, rounds):
    """What a viewer reads on a page, tags taken out; `variables` change the environment."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_fleet"))
    client.force_login(user)

    def look(path="/admin/", *, raw=False, **variables):
        plain = {"VALKEY_URL": valkey_url, "PI_STATE_DIR": str(tmp_path), "PI_EGRESS": "0"}
        there = {**plain, "PI_DAILY_CAP": "10", "PI_SOFT_HOLD_PCT": "80", **variables}
        with override_settings(PIDISPATCH_ENVIRONMENT=there, PIDISPATCH=conf.load(there)):
            response = client.get(path)
            rounds.wait(5)
        assert response.status_code == 200, response.content
        main = response.content.decode()
        return main if raw else " ".join(re.sub(r"<[^>]+>", " ", main).split())

    return look


@pytest.mark.parametrize("path", PAGES)
def test_it_is_for_those_who_may_view_the_fleet_and_changes_nothing(path, client, db):
    assert "/login/" in client.get(path)["Location"]
    client.force_login(User.objects.create_user("nobody", is_staff=True))
    assert client.get(path).status_code == 403

    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_fleet"))
    client.force_login(viewer)
    assert client.post(path).status_code == 405
    assert client.get("/admin/overview/else/").status_code == 404


def test_figures_budget_and_what_to_look_after_stand_on_one_page(seen, valkey, db):
    appear(valkey, "alpha")
    appear(valkey, "beta", age_ms=60_000)
    host = Host(valkey)
    host.enqueue(*(f"local-{n}" for n in range(5)))
    host.start()
    host.put_off(host.claim())
    host.enqueue("local-6", "local-7")
    for reason in ("cap", "pause-window"):
        claimed = host.claim()
        host.steps.put_off(claimed, until_ms=claimed.now_ms + 60_000, reason=reason)
    now = datetime.now(UTC)
    ended = [now, now, now - timedelta(hours=40)]
    rows.write(
        [
            a_record(n, job_id=f"local-r{n}", started_at=end, ended_at=end, outcome=Outcome.FAILED)
            for n, end in enumerate(ended)
        ]
    )
    valkey.set(f"budget:{now:%Y-%m-%d}", 9)
    seen()
    before = everything(valkey)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        text = seen()

    for said in (
        "No queue is paused: jobs start.",
        "Hosts alive 1 1 late",
        "Running 1 2 of 8 slots used",
        "Waiting 3 in line",
        "Deferred 3 1 for a cap, 1 for a pause window, 1 for a busy folder or repository Held",
        "Failed in 24 h 2 of 2 runs",
        "This host only",
        "9 of 10 container starts starts are held back 1 left; beyond 8 starts are held back",
        "Failed waits : (a path): line 3 &lt;b&gt; Mend (a path)",
        "Warning fleet : beta has not beaten for 1 min",
        "0 s ago: 1 of 2 checks ok",
        "0 schedules",
    ):
        assert said in text
    assert "hidden-place" not in text
    assert "`" not in text
    assert everything(valkey) == before
    assert len(queries) <= 15


def test_a_thread_that_may_outlive_the_request_asks_nothing_of_the_database(seen, valkey, monkeypatch):
    appear(valkey, "alpha")
    asked = []

    def last_runs(ids, until_ms):
        asked.append(threading.current_thread())
        return {}

    monkeypatch.setattr(overview_reading, "last_runs", last_runs)
    seen("/admin/overview/care/")
    assert asked == [threading.current_thread()]


def test_every_part_is_fetched_again_as_it_stands_on_the_page(seen, valkey):
    appear(valkey, "alpha")
    page = seen(raw=True)
    for name in PARTS:
        assert f'hx-get="/admin/overview/{name}/"' in page
        assert f'hx-get="/admin/overview/{name}/"' in seen(f"/admin/overview/{name}/", raw=True)
    assert "hx-on" not in page
    assert " style=" not in page


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/overview/care/", "/admin/overview/now/", "/admin/banner/"]
)
def test_without_valkey_it_says_what_cannot_be_seen(path, seen, tmp_path):
    assert "127.0.0.1:1" in seen(path, VALKEY_URL=NOBODY)
    told = seen(path, VALKEY_URL=f"unix://{tmp_path}/nobody.sock")
    assert str(tmp_path) not in told


def test_what_is_foreign_or_malformed_costs_its_own_place(seen, valkey):
    appear(valkey, "alpha", slotsUsed="many", version="<script>alert(1)</script>", beatAt="soon")
    valkey.set("rq:queue:pi-jobs", "no list")
    valkey.set(f"budget:{datetime.now(UTC):%Y-%m-%d}", "seven")
    switches.pause(valkey, [keys.FLEET], by="<script>who", reason="<script>why", lasting=None)

    text = seen(raw=True)

    assert "<script>who" not in text
    assert "<script>why" not in text
    assert "&lt;script&gt;why" in text
    assert "0 + ?" in text
    assert "holds no whole number" in text


def test_a_budget_that_cannot_be_read_is_said_without_the_place_of_its_file(seen, tmp_path):
    limits = tmp_path / "secret-folder" / "limits.json"
    limits.parent.mkdir()
    limits.write_text("{")
    text = seen(PI_SCOPED_LIMITS_FILE=str(limits))
    assert "The budget is not shown: the settings of this host do not load" in text
    assert "secret-folder" not in text


def test_the_banner_speaks_while_something_is_paused_and_says_nothing_twice(seen, client, valkey, valkey_url):
    assert "no worker is there" in seen("/admin/banner/")
    appear(valkey, "alpha")
    assert seen("/admin/banner/") == ""
    switches.pause(valkey, ["pi-jobs"], by="carol", reason="deploy", lasting=timedelta(hours=1))
    told = seen("/admin/banner/", raw=True)
    assert re.search(r"paused.*Paused by carol since .* until .*: deploy", told)

    again = re.search(r'hx-get="(/admin/banner/\?shown=[0-9a-f]{16})"', told).group(1)
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url}):
        assert client.get(again).status_code == 204
        switches.resume(valkey, ["pi-jobs"])
        assert client.get(again).status_code == 200


BANNER = '<div hx-get="/admin/banner/" hx-trigger="load"'


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/admin/log/", 200),
        ("/admin/auth/user/", 200),
        ("/admin/nothing/", 404),
        ("/admin/queue/job/a-job/", 200),
    ],
)
def test_every_page_asks_for_the_banner_once_it_is_there(path, status, admin_client):
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": NOBODY}):
        response = admin_client.get(path)
    assert response.status_code == status
    page = response.content.decode()
    assert page.count(BANNER) == page.count("console/live.js") == 1


def test_who_is_not_logged_in_asks_for_no_banner(client):
    # Nor does that page ask the database, which this test may not use.
    page = client.get("/admin/login/").content.decode()
    assert "banner" not in page
    assert "htmx" not in page


@pytest.mark.parametrize("standing", ["no staff any more", "logged out"])
@pytest.mark.parametrize("path", ["/admin/banner/", "/admin/overview/now/", "/admin/fleet/live/"])
def test_a_part_of_a_page_is_no_place_for_a_login(path, standing, client, admin_user):
    client.force_login(admin_user)
    if standing == "logged out":
        client.logout()
    else:
        User.objects.update(is_staff=False)

    part = client.get(path, headers={"HX-Request": "true"})
    login = client.get("/admin/login/").content.decode()

    # The browser asks for the whole page then, and is led to the login from there.
    assert (part.status_code, part["HX-Refresh"], part.content) == (200, "true", b"")
    assert client.get(path).status_code == 302
    assert "banner" not in login
    assert "console-places" not in login
