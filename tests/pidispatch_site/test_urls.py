from __future__ import annotations

import pytest
from django.test import Client

from pidispatch_site import login

POLICY = {
    "default-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "object-src 'none'",
}


def test_the_sign_of_life_says_nothing_else_and_needs_no_database():
    answer = Client().get("/healthz")

    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-store" in answer["Cache-Control"]
    assert Client().post("/healthz").status_code == 405


def test_the_root_leads_to_the_admin():
    assert Client().get("/")["Location"] == "/admin/"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "[::1]:8000"])
def test_this_machine_is_answered(host):
    assert Client(headers={"host": host}).get("/").status_code == 302


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_any_other_name_is_refused(host):
    """A page elsewhere could otherwise point its own name at this machine and read the admin."""
    assert Client(headers={"host": host}).get("/").status_code == 400


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/login/", "/login/none", "/healthz", "/nowhere"])
def test_every_page_carries_the_strict_headers(path):
    answer = Client().get(path)

    assert set(answer["Content-Security-Policy"].split("; ")) == POLICY
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/login/", "/admin/", "/login/none"])
def test_the_pages_keep_to_their_own_policy(path):
    browser = Client()
    browser.force_login(login.operator(None)[0])

    page = browser.get(path).content.decode()

    assert "<script>" not in page
    assert " style=" not in page
    assert "<style" not in page
    assert " onclick=" not in page


@pytest.mark.django_db
def test_an_error_page_tells_a_stranger_nothing():
    answer = Client().get("/nowhere")

    assert answer.status_code == 404
    assert b"urlpatterns" not in answer.content
