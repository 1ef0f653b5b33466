"""The page of schedules: who may see it, what it says, and what it says when something is away."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings

from dispatch.console.schedules_page import MOST_SHOWN
from dispatch.ids import occurrence_id
from dispatch.instants import instant_of
from runs import rows
from tests.conftest import absent
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.queuekit import everything
from tests.dispatch.schedulekit import HOUR_MS, Bench, entry, schedule
from tests.harness.browser import browser, missing
from tests.harness.records import a_record

PAGE = "/admin/dispatch/schedule/"
CLOSE = {"type": "issue", "action": ["closed"], "number": 7, "once": True}
SHOT = {"on": CLOSE, "run": {"kind": "github", "flow": "fix"}}


@pytest.fixture
def bench(valkey, tmp_path):
    """Of two schedules of alpha one ran and failed, the other was missed."""
    made = Bench(valkey, tmp_path)
    due = made.passed(20)
    minute = instant_of(due).minute
    made.entries = [entry("calm", f"{minute} * * * *"), entry("late", f"{minute} * * * *"), SHOT]
    made.host()
    made.install(schedule("calm", f"{minute} * * * *"), schedule("late", f"{minute} * * * *"))
    valkey.zadd("sched:pi-jobs@alpha:next", {"calm": due + HOUR_MS, "late": due + HOUR_MS})
    made.ran = occurrence_id("calm", instant=instant_of(due))
    return made


@pytest.fixture
def environment(bench, valkey_url):
    """Settings whose environment has the bench's file and server; changes are variables."""

    def changed(**variables):
        plain = {
            "VALKEY_URL": valkey_url,
            "PI_WORKER_NAME": "alpha",
            "PI_TRIGGERS_FILE": str(bench.file.path),
        }
        there = {"PI_STATE_DIR": str(bench.folder), "TZ": "UTC"}
        return override_settings(PIDISPATCH_ENVIRONMENT={**plain, **there, **variables})

    return changed


@pytest.fixture
def viewer(client, db):
    """Somebody of the staff who may view schedules and nothing else."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_schedule"))
    client.force_login(user)
    return client


@pytest.fixture
def seen(environment, viewer):
    """The page's text, tags taken out."""

    def look(asked=None, **variables):
        with environment(**variables):
            response = viewer.get(PAGE, asked or {})
        assert response.status_code == 200
        main = response.content.decode().partition('<div id="content"')[2]
        return " ".join(re.sub(r"<[^>]+>", " ", main).split())

    return look


def test_a_missed_schedule_is_said_in_words_with_what_to_do_and_comes_first(bench, seen):
    rows.write([a_record(1, job_id=bench.ran)])

    text = seen()

    assert "2 schedules, 1 to look after" in text
    assert text.index(" late ") < text.index(" calm ")
    assert re.search(r"missed 20\d\d-\S+ \S+ UTC: nobody knows why Look for its id", text)
    assert " completed " in text
    assert "missed missed" not in text
    assert "github issue #7 closed flow fix once, armed" in text
    assert " late " not in seen({"q": "ca"})
    assert "No schedule begins so" in seen({"q": "zz"})


@pytest.mark.parametrize(
    ("variables", "part"),
    [
        pytest.param({"VALKEY_URL": NOBODY}, "does not answer", id="valkey is away"),
        pytest.param({"VALKEY_URL": "nonsense"}, "VALKEY_URL", id="no address of a server"),
        pytest.param({"VALKEY_URL": "embedded"}, "not running", id="the embedded server does not run"),
        pytest.param({"PI_TRIGGERS_FILE": ""}, "PI_TRIGGERS_FILE is set to an empty value", id="empty"),
        pytest.param({"PI_TRIGGERS_FILE": "/nowhere"}, "file of this host does not load", id="no file"),
    ],
)
def test_what_is_away_is_said_and_the_rest_is_shown(variables, part, seen):
    text = seen(**variables)

    assert part in text
    assert (" calm " in text) is (variables.get("PI_TRIGGERS_FILE") != "")


def test_what_peers_and_authors_wrote_is_text(bench, environment, viewer):
    bench.entries = [entry("a", flow="<script>alert(1)</script>", folder="/<b>")]
    bench.client.hset("sched:pi-jobs@alpha:def", "evil", schedule("evil", "<i> * * * *").text())
    bench.client.hset("sched:pi-jobs@alpha:def", "<u>", "x")

    with environment():
        page = viewer.get(PAGE).content.decode()

    assert not any(tag in page for tag in ("<script>alert", "<b>", "<i>", "<u>"))


def test_it_needs_the_permission_and_changes_nothing(bench, environment, viewer):
    before = everything(bench.client)

    with environment():
        answers = [viewer.get(PAGE).status_code, viewer.post(PAGE, {"x": "y"}).status_code]
        elsewhere = [
            viewer.get(f"{PAGE}{rest}").status_code for rest in ("add/", "late/change/", "late/delete/")
        ]
        viewer.force_login(User.objects.create_user("clerk", is_staff=True))
        refused = viewer.get(PAGE).status_code
        nobody = Client().get(PAGE).status_code

    assert (answers, elsewhere, refused, nobody) == ([200, 405], [403, 404, 404], 403, 302)
    assert everything(bench.client) == before


def test_of_very_many_the_first_are_shown(bench, environment, viewer):
    bench.entries = [entry(f"s{number}", "5 * * * *") for number in range(MOST_SHOWN + 7)]

    with environment():
        page = viewer.get(PAGE).content.decode()

    assert page.count('<th scope="row" class="id">') == MOST_SHOWN
    # Two more stand in the table only.
    assert "9 more are not shown" in page


@pytest.mark.chromium
@pytest.mark.django_db(transaction=True)
def test_a_browser_shows_it_in_its_colours(bench, environment, live_server, tmp_path):
    if program := missing():
        absent(f"{program} is not installed")
    rows.write([a_record(1, job_id=bench.ran)])
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))

    with environment(), browser(tmp_path / "profile") as page:
        page.open(f"{live_server.url}/healthz")
        page.add_cookie(settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
        page.open(f"{live_server.url}/admin/")
        page.follow(f".console-places a[href='{PAGE}']")

        assert page.texts("th.id strong") == ["late", "calm"]
        assert page.texts(".schedules-mark.console-warn")[0].endswith("missed")
        page.screenshot(tmp_path / "schedules.png")
        assert [one for one in page.problems() if "favicon.ico" not in one] == []
