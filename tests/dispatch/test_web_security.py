"""What no page of the site may do (issue's check 8): walked over every address that the site answers to."""

from __future__ import annotations

import re
from functools import partial
from html.parser import HTMLParser
from itertools import cycle

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from dispatch.ids import rq_id
from dispatch.pages import overview, settings_files
from hosts import keys as hosts_keys
from hosts import roster, switches
from pidispatch_site import login
from pidispatch_site.errors import ConfigurationError
from runs import rows
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import Host, everything
from tests.harness.records import a_record

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
# An address on this site: from its root, beside the page, or a place in it.
PLAIN = re.compile(r"/(?![/\\])|[?#.]|[\w-]+/|\Z")
PART = re.compile(r"<(?:(\w+):)?(\w+)>")
# What stands in an address: of everything there is one with these names.
NAMES = {"host": "alpha", "object_id": "job-1", "id": "1", "schedule_id": "nightly", "token": "job-1"}
# Parts of pages that are asked for by a name.
PARTS = {"overview/": tuple(overview._PARTS), "settings/taken/": tuple(settings_files.KINDS)}

#: Of any page, however much there is.
MOST_QUERIES = 15


def addresses():
    """Every address of the site, with something plausible in the place of a parameter."""
    found = dict.fromkeys(_addresses(get_resolver(), ""))
    assert len(found) > 30
    return list(found)


def _addresses(resolver, before):
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from _addresses(pattern, route)
        elif "(" in route or "^" in route:
            # The three that are no route: Django's list of an app, its catch-all and ours.
            yield "/admin/auth/" if "app_label" in route else "/admin/none" if "url" in route else "/api/none"
        else:
            for name in next((names for part, names in PARTS.items() if part in route), ("x",)):
                yield "/" + PART.sub(partial(_parameter, other=name), route)


def _parameter(found, *, other):
    kind, name = found.groups()
    return "1" if kind == "int" else NAMES.get(name, other)


@pytest.fixture
def here(valkey_url, db, tmp_path):
    with override_settings(
        PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url, "PI_STATE_DIR": str(tmp_path), "TZ": "UTC"}
    ):
        yield


@pytest.fixture
def master(db):
    user = User.objects.create_superuser("master")
    made = Client(enforce_csrf_checks=True)
    made.force_login(user)
    return made


@pytest.fixture
def full(here, valkey):
    """A fleet in which every text that somebody else may write is a script."""
    appear(valkey, "alpha", version=EVIL, image=EVIL, imageDigest=EVIL, tz=EVIL, blind=EVIL, caps=EVIL)
    valkey.hset(hosts_keys.host_row("beta"), mapping={"name": EVIL, "hostId": EVIL})
    valkey.sadd(hosts_keys.HOSTS_LIVE, "beta", EVIL)
    valkey.sadd(hosts_keys.QUEUES_KNOWN, EVIL)
    host = Host(valkey)
    host.enqueue("job-1", "job-2", "job-3", EVIL)
    for _ in range(2):
        host.steps.put_off(host.claim(), until_ms=4_000_000_000_000, reason="cap", cause=EVIL)
    host.start()
    for name in ("job-3", EVIL):
        valkey.hset(f"rq:job:{rq_id(name)}", mapping={"scope": EVIL, "cause": EVIL, "reason": EVIL})
    switches.pause(valkey, ["pi-jobs@alpha"], by=EVIL, reason=EVIL)
    named = {"target": EVIL, "flow": EVIL, "model": EVIL, "reason": EVIL, "host": EVIL, "kind": EVIL}
    rows.write([a_record(1, job_id="job-1", **named), a_record(2, job_id=EVIL, **named)])
    User.objects.create_user(EVIL[:100], first_name=EVIL[:50])


def test_no_address_takes_a_post_from_elsewhere(full, valkey, master):
    """As a form on another page sends it: the browser adds the cookies, nobody knows the token."""
    before, sessions = everything(valkey), Session.objects.count()
    origins = cycle([{}, {"origin": "https://evil.example"}, {"origin": "null"}])

    for address, headers in zip(addresses(), origins, strict=False):
        status = master.post(address, {"reason": "x", "confirm": "1"}, headers=headers).status_code
        assert status in {403, 404, 405}, (address, status)

    assert everything(valkey) == before
    assert Session.objects.count() == sessions


def test_a_token_that_leaked_is_worth_nothing_to_another_site(master, here):
    token = master.get("/admin/password_change/").context["csrf_token"]

    def post(**headers):
        return master.post("/admin/logout/", {"csrfmiddlewaretoken": str(token)}, headers=headers).status_code

    assert post(origin="https://evil.example") == 403
    assert post(origin="http://testserver") == 200


def test_looking_costs_few_queries_changes_nothing_and_can_be_shown_safely(full, valkey, master):
    # Whoever reads the registry takes out who has no row.
    roster.read(valkey)
    before = everything(valkey)

    for address in addresses():
        with CaptureQueriesContext(connection) as asked:
            answer = master.get(address)
        assert answer.status_code < 500, address
        assert len(asked) <= MOST_QUERIES, (address, [one["sql"] for one in asked])
        assert answer["X-Frame-Options"] == "DENY", address
        assert answer["X-Content-Type-Options"] == "nosniff", address
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"], address
        assert "unsafe" not in answer["Content-Security-Policy"], address
        assert "camera=()" in answer["Permissions-Policy"], address
        if answer["Content-Type"].startswith("text/html"):
            inert(address, b"".join(answer).decode())

    assert everything(valkey) == before


class _Parts(HTMLParser):
    """What of a page a browser would run, or load from elsewhere."""

    def __init__(self, page):
        super().__init__()
        self.live = []
        self._is_script = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self._is_script = tag == "script" and given.get("type") != "application/json"
        if tag in {"style", "iframe", "object", "embed", "base"} or "style" in given:
            self.live.append((tag, attrs))
        for name, value in attrs:
            is_address = name in {"href", "src", "action", "formaction", "hx-get", "hx-post"}
            if name.startswith(("on", "hx-on")) or (is_address and not PLAIN.match(value or "")):
                self.live.append((tag, name, value))

    def handle_data(self, data):
        if self._is_script and data.strip():
            self.live.append(("script", data))


def inert(address, page):
    assert _Parts(page).live == [], address


def test_without_valkey_no_page_is_broken(here, master):
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": NOBODY, "PI_STATE_DIR": "/nonexistent"}):
        for address in addresses():
            answer = master.get(address)
            assert answer.status_code < 500 or address.startswith("/api/"), address


def test_who_is_not_in_is_led_to_the_login_and_sees_nothing(full):
    stranger = Client()
    opened = {"/healthz", "/login/job-1", "/admin/login/", "/admin/logout/", "/"}

    for address in sorted({*addresses()} - opened):
        answer = stranger.get(address)
        if address.startswith(("/api", "/metrics")):
            assert answer.status_code in {401, 404}, address
        else:
            assert answer.status_code == 302, address
            assert answer["Location"].startswith("/admin/login/?next=/admin"), address


def test_a_session_from_before_the_login_is_none_after_it(db):
    user = login.operator(None)[0]
    browser = Client()
    browser.get("/admin/login/")
    planted = browser.session
    planted["planted"] = "yes"
    planted.save()
    browser.cookies[settings.SESSION_COOKIE_NAME] = planted.session_key

    browser.post(reverse("login", args=[login.token_for(user)]))

    assert browser.cookies[settings.SESSION_COOKIE_NAME].value != planted.session_key
    assert not Session.objects.filter(session_key=planted.session_key).exists()
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = planted.session_key
    assert thief.get("/admin/").status_code == 302
    kept = browser.cookies[settings.SESSION_COOKIE_NAME]
    assert (kept["httponly"], kept["samesite"], kept["path"]) == (True, "Lax", "/")


def test_a_logout_ends_the_session_for_whoever_has_its_cookie(master):
    cookie = master.cookies[settings.SESSION_COOKIE_NAME].value
    master.handler.enforce_csrf_checks = False
    master.post("/admin/logout/")

    again = Client()
    again.cookies[settings.SESSION_COOKIE_NAME] = cookie
    assert again.get("/admin/").status_code == 302


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)"],
)
@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
def test_no_login_or_logout_leads_elsewhere(elsewhere, db):
    User.objects.create_superuser("anna", password="right")
    browser = Client()
    given = {"username": "anna", "password": "right", "next": elsewhere}

    into = browser.post(f"/admin/login/?next={elsewhere}", given)
    out = browser.post(f"/admin/logout/?next={elsewhere}", given)

    assert into["Location"] == "/admin/"
    assert "evil" not in out.get("Location", "")
    assert browser.get("/admin/").status_code == 302


@pytest.mark.parametrize(
    "path", ["//evil.example", "/%5cevil.example", "/admin//evil.example", "//evil.example/.."]
)
def test_no_address_leads_elsewhere(path, master):
    where = master.get(path).get("Location", "")

    assert not re.match(r"(https?:)?(//|/?\\)", where)


@pytest.mark.parametrize(
    ("status", "ask"),
    [
        pytest.param(400, lambda client: client.get("/", headers={"host": "evil.example"}), id="400"),
        pytest.param(403, lambda client: client.post("/admin/login/", {}), id="403"),
        pytest.param(404, lambda client: client.get(f"/{EVIL}"), id="404"),
    ],
)
def test_a_refusal_is_a_page_in_words_without_a_detail(status, ask, db):
    answer = ask(Client(enforce_csrf_checks=True))
    page = answer.content.decode()

    assert answer.status_code == status
    assert "<h1>" in page
    assert "pi-dispatch" in page
    inert(str(status), page)
    for detail in ("evil", "Traceback", "urlconf", "CSRF", "alert"):
        assert detail not in page


ALL_GROUPS = "the group viewer or operator or admin has"


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/admin/fleet/", 403, f"needs the permission dispatch.view_fleet, which {ALL_GROUPS}"),
        ("/admin/runs/run/job-1/json/", 403, f"needs the permission runs.view_run, which {ALL_GROUPS}"),
        (
            "/admin/dispatch/schedule/",
            403,
            f"needs the permission dispatch.view_schedule, which {ALL_GROUPS}",
        ),
        ("/admin/switch/pause/", 403, "dispatch.operate_fleet, which the group operator or admin has"),
        ("/admin/auth/group/", 403, "admin also changes schedules and settings"),
        ("/admin/none/", 404, "There is nothing here"),
        ("/nowhere", 404, "There is nothing here"),
    ],
)
def test_who_is_in_keeps_the_way_around_where_he_is_refused(path, status, part, db, here):
    user = User.objects.create_user("kim", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_user"))
    browser = Client()
    browser.force_login(user)

    answer = browser.get(path)
    page = answer.content.decode()

    assert answer.status_code == status
    for there in (part, "Log out", '<a href="/admin/auth/user/"'):
        assert there in page
    inert(path, page)


def test_what_is_away_costs_the_page_no_more_than_the_way_around(master, monkeypatch):
    monkeypatch.setattr("pidispatch_site.login._page", _raising(ConfigurationError("canary")))
    page = master.get("/login/none").content.decode()
    assert "configuration of this host has a fault" in page
    assert "Log out" in page

    monkeypatch.setattr(admin.site, "each_context", _raising(OperationalError("away")))
    page = master.get("/login/none").content.decode()
    assert "configuration of this host has a fault" in page
    assert "Log out" not in page


def _raising(error):
    def fails(*_args, **_kwargs):
        raise error

    return fails


PLACES = {
    "view": "pidispatch_site.login._page",
    "middleware": "django.contrib.messages.middleware.default_storage",
}


class _MistakeError(Exception):
    """A mistake of ours."""


@pytest.mark.parametrize(
    ("error", "status", "part"),
    [
        (OperationalError("canary at /srv/secret"), 503, "The database of this host cannot be used"),
        (_MistakeError("canary at /srv/secret"), 500, "pi-dispatch made a mistake"),
    ],
)
@pytest.mark.parametrize("where", PLACES)
def test_what_fails_is_told_without_a_detail(where, error, status, part, db, monkeypatch, events):
    browser = Client(raise_request_exception=False)
    browser.force_login(login.operator(None)[0])
    monkeypatch.setattr(PLACES[where], _raising(error))

    answer = browser.get("/login/none")

    assert answer.status_code == status
    assert part in answer.content.decode()
    assert ("Retry-After" in answer) == (status == 503)
    assert "canary" not in answer.content.decode() + str(events())


@override_settings(
    SECURE_SSL_REDIRECT=True,
    SECURE_HSTS_SECONDS=60,
    SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"),
    ALLOWED_HOSTS=["pi.example", "127.0.0.1"],
)
def test_behind_tls_nothing_is_said_in_the_clear(db):
    plain = Client(headers={"host": "pi.example"})
    secure = Client(headers={"host": "pi.example", "x-forwarded-proto": "https"})

    assert plain.get("/admin/")["Location"] == "https://pi.example/admin/"
    assert plain.get("/healthz").status_code == 200
    told = plain.get("/api/status", headers={"authorization": "Bearer x"})
    assert (told.status_code, told.json()["error"]["code"]) == (403, "https-required")
    assert secure.get("/api/status").status_code == 401
    assert Client(headers={"host": "127.0.0.1:8000"}).get("/metrics").status_code == 401
    assert secure.get("/admin/login/")["Strict-Transport-Security"].startswith("max-age=60")
