"""Check 1 and 5 of the console: a real browser on every page, for everybody, while jobs run on two hosts."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from dispatch.pages.routes import ROUTES
from hosts import switches
from tests.harness import usable
from tests.harness.console_person import kind_of
from tests.harness.console_stage import PRINTED
from tests.harness.web_process import PASSWORD
from tests.harness.worker_process import until

pytestmark = pytest.mark.chromium

#: Besides the console: Django's own pages of users, and what is no page.
_NO_PAGES = ("/admin/auth/", "/admin/logout", "/admin/password_change", "/admin/jsi18n")
_FILES = (".csv", ".json", ".txt")
_PLACE = """
const one = document.activeElement;
return {focused: one.textContent, scrolled: one.closest('.console-wide')?.scrollLeft};
"""
_AGAIN = """
window.before = document.activeElement;
const part = window.before.closest('[hx-get]');
htmx.ajax('GET', part.getAttribute('hx-get'), {source: part, target: part, swap: 'outerHTML'});
"""


# The richest first: what is on a page of the others besides is looked at then.
@pytest.mark.parametrize("role", ["admin", "operator", "viewer"])
def test_every_page_is_there_and_usable_for_everybody(stage, role):
    stage.enter(role)
    found = ["/admin/"]
    for path in found:
        stage.goes(path.removeprefix("/admin/"))
        stage.looks()
        if role == "viewer":
            assert not stage.page.run("return document.querySelectorAll('main form[method=post]').length"), (
                path
            )
        known = {kind_of(one) for one in found}
        for link in stage.links():
            is_page = link.startswith("/admin/") and not link.startswith(_NO_PAGES)
            is_file = urlsplit(link).path.endswith(_FILES)
            if is_page and not is_file and kind_of(link) not in known:
                known.add(kind_of(link))
                found.append(link)
    stage.end()
    assert len(found) >= {"admin": 26, "operator": 19, "viewer": 12}[role], found


def test_somebody_logs_in_and_out_and_asks_for_what_is_not_there(stage):
    stage.enter("viewer")
    stage.page.forget()
    stage.goes("switch/")
    stage.looks()
    stage.fills(**{"Username:": "viewer", "Password:": PASSWORD})
    stage.follows("Log in")
    stage.says("No queue is paused: jobs start.")
    assert stage.page.url == f"{stage.web.url}/admin/switch/"
    stage.page.open(f"{stage.web.url}/admin/fleet/nothing/")
    # The browser complains of the status itself.
    assert len(stage.page.problems()) == 1
    stage.looks()
    stage.goes("")
    stage.follows("Log out")
    stage.goes("fleet/")
    assert urlsplit(stage.page.url).path == "/admin/login/"
    stage.end()


def test_the_kill_switch_needs_no_more_than_a_keyboard(stage):
    stage.enter("operator")
    stage.page.open(f"{stage.web.url}/admin/")

    def on(name):
        usable.tab_to(stage.page, name)
        with stage.page.leaving():
            stage.page.press(usable.ENTER)

    on("Kill switch")
    on("Pause everything…")
    usable.tab_to(stage.page, "Reason")
    stage.page.press("by hand")
    usable.tab_to(stage.page, "Ends by itself after")
    stage.page.press("2h")
    on("Pause the whole fleet")
    held = stage.status()
    on("Resume everything…")
    on("Resume everything")

    assert (held["pausedState"], held["pause"]["reason"]) == (True, "by hand")
    assert held["pause"]["until"] - held["pause"]["since"] == 2 * 3600_000
    assert not stage.status()["pausedState"]


@pytest.mark.parametrize(
    ("path", "name"), [("switch/", "Pause pi-jobs@beta…"), ("queue/job/{}/", "manage.py resume --fleet-only")]
)
def test_what_is_fetched_again_keeps_the_focus_and_where_somebody_has_scrolled_to(stage, path, name):
    switches.pause(stage.fleet.client, ("*",), by="the test", reason="")
    page = stage.page
    stage.enter("operator")
    stage.goes(path.format(stage.enqueue("pi-jobs")))
    page.looks(width=usable.TELEPHONE)
    usable.tab_to(page, name)
    before = page.run(_PLACE)
    page.run(_AGAIN)
    until(lambda: page.run("return !window.before.isConnected"), seconds=10, what="it is fetched again")

    assert before["scrolled"] != 0
    assert page.run(_PLACE) == before
    switches.resume(stage.fleet.client, ("*",))


def test_only_an_admin_reads_what_a_job_printed(stage):
    for role, is_shown in (("operator", False), ("admin", True)):
        stage.enter(role)
        stage.goes(f"runs/run/{stage.done[0]}/")
        assert (PRINTED in stage.says()) is is_shown
    stage.page.open(f"{stage.page.url}log.txt")
    assert stage.page.texts("pre") == [PRINTED]
    # No page of the console, and without its icon.
    stage.page.problems()
    stage.end()


def test_a_viewers_forged_post_is_refused_everywhere_and_changes_nothing(stage):
    switches.pause(stage.fleet.client, ("*",), by="the test", reason="")
    stage.until_calm()
    stage.enter("viewer")
    before = stage.everything()
    stage.goes("queue/")
    refused, shown = set(), set()
    for name, status, text in stage.forges(_addresses(stage), stage.forged()):
        assert "CSRF" not in text, name
        assert status in (403, 405), (name, status)
        (refused if status == 403 else shown).add(name)
    after = stage.everything()

    assert after == before
    assert len(refused) >= 20, refused
    # Their token was in order: what only shows said no to the method.
    assert {"console_fleet", "console_switch", "console_queue", "console_log"} <= shown
    switches.resume_all(stage.fleet.client)


def _addresses(stage):
    """Every address of the console, about something that is there."""
    about = {
        "host": "beta",
        "token": stage.running[1],
        "schedule_id": "nightly",
        "index": "0",
        "name": "now",
        "kind": "overlay",
        "operation_id": "0" * 32,
    }
    return {name: re.sub(r"<\w+:(\w+)>", lambda found: about[found[1]], route) for route, name, _ in ROUTES}
