"""Check 1 and 5 of the console: a real browser on every page and at every action, with jobs on two hosts.

One stage and one browser for all of it: a page that looks like one that was looked at is not looked at again.
"""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from dispatch.console.cancelling import cancel
from dispatch.instants import epoch_ms
from dispatch.schedules.table import Table
from hosts import switches
from tests.harness import console_kinds, console_posts, usable
from tests.harness.console_person import kind_of
from tests.harness.console_stage import HOSTS, PRINTED
from tests.harness.web_process import PASSWORD
from tests.harness.worker_process import until

pytestmark = pytest.mark.chromium

#: Besides the console: Django's own pages of users, and what is no page.
_NO_PAGES = ("/admin/auth/", "/admin/logout", "/admin/password_change", "/admin/jsi18n")
_FILES = (".csv", ".json", ".txt")
ROWS = {
    "windows": {"scope": "owner/repository", "from": "01:00", "to": "02:00", "dateTo": "2020-01-31"},
    "limits": {"scope": "owner/repository", "day": 5},
}
#: What is to be said of a host that is drained, wherever a link to it may stand.
DRAINED = [
    *(f"/admin/fleet/host/beta/{end}" for end in ("", "drain/", "undrain/", "reroute/")),
    *(
        f"/admin/switch/{end}"
        for end in ("stop/?host=beta", "resume/?queue=pi-jobs@beta", "stop/", "resume/")
    ),
]
# Every table fits, whatever the window; until something in one does not.
_WIDER = """
const sheet = new CSSStyleSheet();
sheet.replaceSync('.console-wide table { min-width: 200vw; }');
document.adoptedStyleSheets = [sheet];
"""
_PLACE = """
const one = document.activeElement;
return {focused: one.textContent, scrolled: one.closest('.console-wide')?.scrollLeft};
"""
#: The jobs of the queue's page.
_LISTED = ".queue-jobs .queue-id > a"
_AGAIN = """
window.before = document.activeElement;
const part = window.before.closest('[hx-get]');
htmx.ajax('GET', part.getAttribute('hx-get'), {source: part, target: part, swap: 'outerHTML'});
"""


# The richest first: what is on a page of the others besides is looked at then.
@pytest.mark.parametrize("role", ["admin", "operator", "viewer"])
def test_every_page_is_there_and_usable_for_everybody(stage, role):
    stage.enter(role)
    found = crawls(stage, "/admin/")
    stage.end()
    assert len(found) >= {"admin": 26, "operator": 19, "viewer": 12}[role], found


def crawls(stage, *paths):
    """Look at these pages and at one of each other kind that links lead to; all of them."""
    found = [*paths]
    for path in found:
        stage.goes(path.removeprefix("/admin/"))
        stage.looks()
        if stage.role == "viewer":
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
    return found


def test_so_is_every_page_when_work_is_paused_and_a_host_drained(stage):
    client, soon = stage.fleet.client, {"lasting": timedelta(hours=2)}
    tables = [Table(client, f"pi-jobs@{host}") for host in HOSTS]
    for part, row in ROWS.items():
        stage.writes(part, {"version": 1, part: [row]})
    switches.pause(client, ("*", "pi-jobs@beta"), by="the test", reason="a release", **soon)
    switches.drain(client, "beta", by="the test", reason="a new disk", **soon)
    assert all(table.tear_down("tidy", stalls=3, at_ms=epoch_ms(datetime.now(UTC))) for table in tables)
    stage.enter("admin")
    crawls(stage, *DRAINED, "/admin/")
    stage.end()

    assert console_kinds.CRAWLED - stage.kinds() == set()
    assert all(table.restore("tidy") for table in tables)
    switches.undrain(client, "beta")
    switches.resume_all(client)
    for part in ROWS:
        stage.writes(part, {"version": 1, part: []})


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
    ("path", "name"),
    [("dispatch/schedule/", "Remove nightly"), ("queue/job/{}/", "manage.py resume --fleet-only")],
)
def test_what_is_fetched_again_keeps_the_focus_and_where_somebody_has_scrolled_to(stage, path, name):
    switches.pause(stage.fleet.client, ("*",), by="the test", reason="")
    page = stage.page
    stage.enter("admin")
    stage.goes(path.format(stage.enqueue("pi-jobs")))
    page.run(_WIDER)
    usable.tab_to(page, name)
    before = page.run(_PLACE)
    page.run(_AGAIN)
    until(lambda: page.run("return !window.before.isConnected"), seconds=10, what="it is fetched again")

    assert before["scrolled"] != 0
    assert page.run(_PLACE) == before
    switches.resume(stage.fleet.client, ("*",))


def test_a_page_that_is_not_refreshed_says_so_until_it_is(stage):
    stage.enter("viewer")
    stage.goes("switch/")
    stage.page.loses_its_line(is_lost=True)
    until(lambda: "may be old" in stage.says(), seconds=20, what="it is said")
    stage.page.loses_its_line(is_lost=False)
    until(lambda: "may be old" not in stage.says(), seconds=20, what="it is fetched again")
    # The browser complains of each request that did not get through.
    stage.page.problems()
    stage.end()


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
    stage.enter("admin")
    stage.goes("queue/")
    actions = stage.actions()
    stage.enter("viewer")
    before = stage.everything()
    stage.goes("queue/")
    everywhere = console_posts.addresses(stage.about)
    addresses = {name: everywhere[name] for name in everywhere.keys() - console_posts.OWN}
    answers = stage.forges(addresses, stage.forged())
    refused = {name for name, status, _ in answers if status == 403}
    after = stage.everything()

    assert after == before
    # Their token was in order: what only shows says no to the method.
    assert [name for name, _, text in answers if "CSRF" in text] == []
    assert {name: status for name, status, _ in answers if name not in refused} == dict.fromkeys(
        addresses.keys() - refused, 405
    )
    assert {"console_fleet", "console_switch", "runs_run_changelist", "api_runs", "index"}.isdisjoint(refused)
    accounts = {name for name in addresses if name.startswith(("auth_user_", "auth_group_"))}
    assert accounts >= console_posts.USERS
    assert refused >= actions | accounts
    assert len(actions) >= 20, actions
    switches.resume_all(stage.fleet.client)


def test_what_is_filtered_is_what_is_downloaded(stage):
    stage.enter("viewer")
    stage.goes("runs/run/")
    stage.chooses(Outcome="Completed", Host="alpha")
    for given, wanted in ((stage.done[1], [stage.done[1]]), ("", stage.done)):
        stage.fills(Job=given)
        stage.follows("Filter")
        found = json.loads(stage.downloads("JSON"))
        lines = [*csv.DictReader(stage.downloads("CSV").splitlines())]

        listed = stage.page.texts("td.id a")
        assert sorted(listed) == sorted(wanted)
        assert (found["complete"], [run["jobId"] for run in found["runs"]]) == (True, listed)
        assert [(line["jobId"], line["outcome"], line["host"]) for line in lines] == [
            (job_id, "completed", "alpha") for job_id in listed
        ]
    stage.end()


def test_filters_show_what_was_asked_for(stage):
    stage.enter("viewer")
    stage.goes("fleet/")
    stage.fills(Host="bet")
    stage.follows("Filter")
    assert stage.page.texts("#fleet-hosts th a") == ["beta"]
    stage.follows("Show all")
    stage.chooses(Show="gone")
    stage.follows("Filter")
    stage.says("No host is like that.")

    stage.goes("dispatch/schedule/")
    stage.fills(Id_begins_with="ni")
    stage.follows("Filter")
    assert stage.page.texts("th.id strong") == ["nightly"]
    stage.follows("Show all")
    assert stage.page.texts("th.id strong") == ["nightly", "tidy"]
    stage.end()


def test_insights_are_of_the_span_and_by_what_was_chosen(stage):
    stage.enter("viewer")
    stage.goes("insights/")
    for name in ("7 days", "Host", "Failed"):
        stage.follows(name)
    assert stage.page.texts(".insights-parts tbody tr")[0].startswith("alpha 3 3 ")
    today = datetime.now(UTC).date()
    for day, said in ((today - timedelta(days=9), "No run ended in this span."), (today, "alpha 3 3 ")):
        # A browser takes the parts of a date as its language has them.
        stage.fills(From=f"{day:%m%d%Y}", to=f"{day:%m%d%Y}")
        stage.follows("Show")
        stage.says(f"{day} 00:00 to", said, "Failed by host")
    stage.end()


def test_a_long_queue_has_pages_and_refreshes_itself_once_asked(stage):
    beta = "pi-jobs@beta"
    switches.pause(stage.fleet.client, (beta,), by="the test", reason="")
    jobs = [stage.enqueue(beta) for _ in range(60)]
    stage.enter("operator")
    stage.goes("queue/")
    stage.chooses(Queue=beta)
    stage.fills(Job=jobs[7])
    stage.follows("Filter")
    assert stage.page.texts(_LISTED) == [jobs[7]]
    stage.follows("Show all")
    stage.follows(beta)
    for name, wanted in (
        ("All 60 of waiting", jobs[:50]),
        ("Next", jobs[50:]),
        ("First", jobs[:50]),
        ("1000 a page", jobs),
    ):
        stage.follows(name)
        assert stage.page.texts(_LISTED) == wanted

    stage.goes(f"queue/?queue={beta}&id={jobs[7]}")
    stage.follows("Refresh by itself")
    cancel(stage.fleet.client, [jobs[7]])
    until(lambda: stage.page.texts(_LISTED) == [], seconds=20, what="it is fetched again")
    stage.goes(f"queue/?queue={beta}&live=1")
    stage.follows("Stop refreshing, to choose jobs")
    assert "live" not in stage.page.url
    stage.end()
