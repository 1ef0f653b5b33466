from __future__ import annotations

import json
import re
import threading
import time

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core import signing
from django.db import connection
from django.test import Client
from django.urls import reverse

from pidispatch_site import login
from pidispatch_site.errors import ConfigurationError

pytestmark = pytest.mark.django_db


@pytest.fixture
def user():
    return login.operator(None)[0]


@pytest.fixture
def browser():
    """A browser that keeps to the rules about forms."""
    return Client(enforce_csrf_checks=True)


def address(token):
    return reverse("login", args=[token])


def press(browser, url):
    """Open the page and press its button."""
    page = browser.get(url).content.decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    return browser.post(url, {"csrfmiddlewaretoken": found[1] if found else ""})


def is_in(browser):
    return browser.get("/admin/").status_code == 200


def test_a_link_logs_in_once(browser, user):
    url = address(login.token_for(user))

    answer = press(browser, url)

    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert is_in(browser)
    other = Client()
    assert other.post(url).status_code == 410
    assert not is_in(other)


def test_opening_the_link_shows_a_button_and_uses_nothing_up(browser, user):
    url = address(login.token_for(user))

    for _ in range(3):
        page = Client().get(url)
        assert page.status_code == 200
        assert b'<form method="post">' in page.content
        assert Client().head(url).status_code == 200

    assert press(browser, url).status_code == 302


def test_a_press_without_the_forms_own_token_is_refused_and_uses_nothing_up(browser, user):
    url = address(login.token_for(user))

    assert browser.post(url).status_code == 403
    assert press(browser, url).status_code == 302


def test_a_link_ends_after_ten_minutes(browser, user, monkeypatch):
    token = login.token_for(user)
    made = signing.time.time()

    monkeypatch.setattr(signing.time, "time", lambda: made + login.LIFETIME_SECONDS - 5)
    assert browser.get(address(token)).status_code == 200

    monkeypatch.setattr(signing.time, "time", lambda: made + login.LIFETIME_SECONDS + 5)
    assert browser.get(address(token)).status_code == 410
    assert Client().post(address(token)).status_code == 410


@pytest.mark.parametrize("change", ["login", "password", "inactive", "no staff", "deleted"])
def test_whatever_changes_the_user_ends_the_link(user, change):
    token = login.token_for(user)
    if change == "login":
        press(Client(), address(login.token_for(user)))
    elif change == "password":
        user.set_password("new")
        user.save()
    elif change == "deleted":
        user.delete()
    else:
        User.objects.filter(pk=user.pk).update(
            **{"inactive": {"is_active": False}, "no staff": {"is_staff": False}}[change]
        )

    assert Client().post(address(token)).status_code == 410


@pytest.mark.parametrize("token", ["x", "a:b:c", "WzEsMV0:1xXfi9:forged", "%00", "x" * 5000])
def test_a_token_that_was_not_made_here_opens_nothing(browser, token):
    answer = browser.get(address(token), headers={"host": "127.0.0.1:9001"})

    assert answer.status_code == 410
    assert b"<form" not in answer.content
    assert b"manage.py loginlink --base-url http://127.0.0.1:9001<" in answer.content


@pytest.mark.parametrize("payload", [1, "x", [1], [1, 2], [None, "x"], ["x", "y"], {"a": 1}])
def test_a_payload_of_another_shape_opens_nothing(browser, user, payload):
    token = signing.dumps(payload, salt="pidispatch_site.login")

    assert browser.get(address(token)).status_code == 410


def test_a_token_signed_for_another_purpose_opens_nothing(browser, user):
    payload = signing.loads(login.token_for(user), salt="pidispatch_site.login")

    assert browser.get(address(signing.dumps(payload, salt="other"))).status_code == 410


@pytest.mark.django_db(transaction=True)
def test_of_those_who_press_at_once_one_gets_in(monkeypatch):
    url = address(login.token_for(login.operator(None)[0]))
    together, answers = threading.Barrier(4), []
    log_in = login.login

    def slowly(*args, **kwargs):
        """Widen the window between the check of the link and what ends it."""
        time.sleep(0.1)
        log_in(*args, **kwargs)

    monkeypatch.setattr(login, "login", slowly)

    def race():
        together.wait()
        answers.append(Client().post(url).status_code)
        connection.close()

    racers = [threading.Thread(target=race) for _ in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()

    assert sorted(answers) == [302, 410, 410, 410]


class TestOperator:
    def test_the_first_one_is_made_without_a_password(self):
        user, is_new = login.operator(None)

        assert (user.username, user.is_superuser, user.has_usable_password()) == ("operator", True, False)
        assert is_new
        assert login.operator(None) == (user, False)
        assert LogEntry.objects.get().user == user

    def test_a_named_one_is_found_and_made_only_when_asked(self):
        with pytest.raises(ConfigurationError, match=r"no user 'ann'; there are no users yet\. --create"):
            login.operator("ann")
        made, is_new = login.operator("ann", create=True)
        assert (made.is_superuser, is_new) == (True, True)
        assert login.operator("ann") == login.operator("ann", create=True) == (made, False)
        with pytest.raises(ConfigurationError, match=r"no user 'bob'; users are 'ann'\. --create"):
            login.operator("bob")
        assert [one.username for one in User.objects.all()] == ["ann"]

    def test_one_who_may_not_use_the_console_is_refused(self):
        User.objects.create_user("bob")

        with pytest.raises(ConfigurationError, match=r"bob may not use the console.*Staff status"):
            login.operator("bob", create=True)

    def test_an_inactive_superuser_does_not_count(self):
        User.objects.create_superuser("gone", is_active=False)

        assert login.operator(None)[0].username == "operator"


def test_the_event_log_tells_of_logins_and_of_wrong_ones_without_a_name(browser, user, capsys):
    press(browser, address(login.token_for(user)))
    wrong = {"username": "hunter2", "password": "correct horse", "next": "/admin/"}
    Client(REMOTE_ADDR="192.0.2.7").post("/admin/login/", wrong)

    said = capsys.readouterr().out
    assert [json.loads(line) for line in said.splitlines()] == [
        {"event": "logged_in", "user": user.pk, "address": "127.0.0.1"},
        {"event": "login_failed", "address": "192.0.2.7"},
    ]
