"""The log page: who sees what of which action, page after page, whatever stands in the log."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.test import RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext

from dispatch.models import Fleet
from dispatch.pages import audit
from dispatch.pages.log_lines import line
from pidispatch_site import login
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.queuekit import everything

PAGE = "/admin/log/"


@pytest.fixture
def carol(client, db, valkey_url):
    """Somebody who may view, logged in."""
    user = User.objects.create_user("carol<i>", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_fleet"))
    client.force_login(user)
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url}):
        yield user


def did(user, action, target="pi-jobs", **told):
    request = RequestFactory().get("/")
    request.user = user
    assert audit.record(request, action, target, **told)


def test_it_is_for_those_who_may_view_and_changes_nothing(client, carol, valkey):
    before = everything(valkey)
    assert client.get(PAGE).status_code == 200
    assert client.post(PAGE).status_code == 405
    assert everything(valkey) == before
    client.force_login(User.objects.create_user("nobody", is_staff=True))
    assert client.get(PAGE).status_code == 403
    client.logout()
    assert "/login/" in client.get(PAGE)["Location"]


def test_an_action_is_told_with_before_and_after_and_its_text_is_harmless(client, carol):
    did(
        carol,
        "host-pause",
        "<script>t",
        reason="<script>r",
        before={"paused": False},
        after={"until": "<script>"},
    )
    page = client.get(PAGE).content.decode()
    assert "<script>t" not in page
    assert "<script>r" not in page
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert (
        "UTC carol&lt;i&gt; host-pause &lt;script&gt;t &lt;script&gt;r paused: no until: &lt;script&gt;"
        in text
    )


def test_parts_of_the_operators_files_are_for_those_who_may_configure(client, carol):
    did(
        carol,
        "trigger-edit",
        "nightly",
        reason="see /srv/out-of-sight/a",
        before={"folder": "/srv/out-of-sight", "task": "out-of-sight"},
        after={},
    )
    page = client.get(PAGE).content.decode()
    assert "trigger-edit" in page
    assert "out-of-sight" not in page
    carol.user_permissions.add(Permission.objects.get(codename="configure_fleet"))
    page = client.get(PAGE).content.decode()
    assert "folder: /srv/out-of-sight" in page
    assert "see /srv/out-of-sight/a" in page


@pytest.mark.parametrize(
    "action", ["host-drain", "pause", "resume", "stop-ended", "cancel", "rerun", "schedule-started"]
)
def test_switches_and_jobs_are_for_everybody(action, client, carol):
    did(carol, action, before={"job": "local-1"}, after={"job": "local-2"})
    page = client.get(PAGE).content.decode()
    assert [one for one in ("job: local-1", "job: local-2") if one not in page] == []


def test_accounts_and_tokens_are_told_without_secrets(client, carol, admin_client):
    call_command("apitoken", "create", "ci", stdout=(token := StringIO()), stderr=StringIO())
    call_command("apitoken", "revoke", "ci", stderr=StringIO())
    login.operator("dora", create=True)
    password = "a-Long-1-enough"
    sent = {"username": "eve", "usable_password": "true", "password1": password, "password2": password}
    admin_client.post("/admin/auth/user/add/", sent)
    eve = User.objects.get(username="eve")
    changed = {"password1": password[::-1], "password2": password[::-1], "usable_password": "true"}
    admin_client.post(f"/admin/auth/user/{eve.pk}/password/", {**changed, "set-password": "x"})
    admin_client.post(f"/admin/auth/user/{eve.pk}/delete/", {"post": "yes"})
    page = client.get(PAGE).content.decode()
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    for part in (
        "manage.py apitoken, for api token-created ci for: until it is revoked",
        "manage.py apitoken, for api token-revoked ci",
        "manage.py loginlink, for dora user-added dora",
        "admin user-added eve",
        "admin user-changed eve Changed password.",
        "admin user-deleted eve",
    ):
        assert part in text, part
    for secret in (token.getvalue().strip(), password, password[::-1], eve.password):
        assert secret not in page


def test_pages_are_walked_by_key_to_the_first_action(client, carol):
    kind = ContentType.objects.get_for_model(Fleet)
    other = ContentType.objects.get_for_model(Permission)
    LogEntry.objects.bulk_create(
        LogEntry(
            user=carol,
            content_type=other if number % 5 == 0 else kind,
            object_repr=f"target-{number}.",
            action_flag=CHANGE,
            change_message="{}",
        )
        for number in range(150)
    )
    found, path = [], PAGE
    while path:
        with CaptureQueriesContext(connection) as queries:
            page = client.get(path).content.decode()
        assert len(queries) <= 15
        found += re.findall(r"target-(\d+)\.", page)
        older = re.search(r'href="(\?older_than=\d+)"', page)
        path = PAGE + older.group(1) if older else ""
    assert [int(one) for one in found] == [one for one in reversed(range(150)) if one % 5]


@pytest.mark.sqlite
def test_a_page_is_read_from_the_newest_on_and_sorts_no_log(client, carol):
    with CaptureQueriesContext(connection) as queries:
        client.get(PAGE)
    (asked,) = [one["sql"] for one in queries if "django_admin_log" in one["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked}")
        steps = [step[-1] for step in cursor.fetchall()]
    assert "SCAN django_admin_log" in steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps


def test_without_valkey_the_actions_are_there(client, carol):
    did(carol, "pause")
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": NOBODY}):
        page = client.get(PAGE).content.decode()
    assert "127.0.0.1:1" in page
    assert '<th scope="row">pause</th>' in page


@pytest.mark.parametrize("older_than", ["", "x", "-1", "9" * 30, "²"])
def test_what_is_no_key_is_as_if_it_were_not_there(older_than, client, carol):
    assert "In the background" in client.get(PAGE, {"older_than": older_than}).content.decode()


@pytest.mark.parametrize(
    ("message", "after"),
    [
        ("", ()),
        ("no json", ()),
        ("[" * 100_000, ()),
        ('{"action": 3, "after": [1, "b", true, null]}', ("1, b, yes, none",)),
        (
            '{"after": {"a": [{"b": "x\\u001b"}], "c": [], "d": {"e": null}}}',
            ("a[0].b: x", "c: none", "d.e: none"),
        ),
        (
            '{"after": {"*": {"since": 1800000000000, "beatAt": 1800000000000, "until": null, "of": "*"}}}',
            (
                "the whole fleet.since: 2027-01-15 08:00:00 UTC",
                "the whole fleet.beatAt: 2027-01-15 08:00:00 UTC",
                "the whole fleet.until: none",
                "the whole fleet.of: the whole fleet",
            ),
        ),
        (
            '{"after": {"until": 5, "since": true, "maxTokens": 1800000000000}}',
            ("until: 5", "since: yes", "maxTokens: 1800000000000"),
        ),
    ],
)
def test_whatever_stands_in_an_entry_is_a_line(message, after):
    found = line(1, datetime.now(UTC), "w", "t", message, may_configure=True, veil=str)
    assert (found.action, found.after.lines, found.before.lines) == ("—", after, ())


def test_much_is_cut_and_folded():
    many = {f"k{place}": "x" * 999 for place in range(99)}
    message = f'{{"after": {many}}}'.replace("'", '"')
    after = line(1, datetime.now(UTC), "w", "t", message, may_configure=True, veil=str).after
    assert after.is_long
    assert after.lines[-1] == "… and 39 more"
    assert max(map(len, after.lines)) == 301
