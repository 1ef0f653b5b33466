"""Check 1 and 5 of the console: a real browser on every page and at every action, with jobs on two hosts.

One stage and one browser for all of it: a page that looks like one that was looked at is not looked at again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from dispatch.console.counts import number_of
from dispatch.instants import epoch_ms
from dispatch.pages.routes import ROUTES
from dispatch.schedules.table import Table
from hosts import switches
from runs.workspace.scope import hash16
from tests.harness import usable
from tests.harness.by_words import control
from tests.harness.console_person import kind_of
from tests.harness.console_stage import HOSTS, PRINTED, RUNNING
from tests.harness.manage import answered
from tests.harness.web_process import PASSWORD
from tests.harness.worker_process import until

pytestmark = pytest.mark.chromium

#: Besides the console: Django's own pages of users, and what is no page.
_NO_PAGES = ("/admin/auth/", "/admin/logout", "/admin/password_change", "/admin/jsi18n")
_FILES = (".csv", ".json", ".txt")
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


def test_djangos_own_list_of_users_fits_whatever_the_window(stage):
    stage.enter("admin")
    stage.goes("auth/user/")

    assert list(usable.slips(stage.page)) == []


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


def test_an_operator_pauses_and_resumes_the_fleet_and_one_queue(stage):
    stage.enter("operator")
    stage.goes("switch/")
    stage.follows("Pause everything…")
    stage.says("No job starts on any host", f"{RUNNING} active")
    stage.fills(Reason="a release", Ends_by_itself_after="90m")
    stage.follows("Pause the whole fleet")
    stage.says("Paused the whole fleet", "by operator (console)", "a release")

    status = answered(stage.web.environment, "status")
    assert status["pausedState"]
    assert (status["pause"]["by"], status["pause"]["reason"]) == ("operator (console)", "a release")
    assert status["pause"]["until"] - status["pause"]["since"] == 90 * 60_000
    stage.logs("operator", "pause", "the whole fleet", "a release")

    stage.goes("switch/")
    stage.follows("Resume everything…")
    stage.fills(Reason="released")
    stage.follows("Resume everything")
    stage.says("Resumed the whole fleet", "No queue is paused: jobs start.")
    assert not stage.status()["pausedState"]
    stage.logs("operator", "resume", "the whole fleet", "released")

    stage.goes("fleet/host/beta/")
    stage.follows("Pause its queue")
    stage.fills(Reason="a disk")
    stage.follows("Pause pi-jobs@beta")
    stage.says("1 of 3 queues is paused: pi-jobs@beta.")
    assert stage.status()["pausedQueues"] == ["pi-jobs@beta"]
    stage.logs("operator", "pause", "pi-jobs@beta", "a disk")

    stage.goes("switch/")
    stage.follows("Resume pi-jobs@beta…")
    stage.follows("Resume pi-jobs@beta")
    assert "pausedQueues" not in stage.status()
    stage.logs("operator", "resume", "pi-jobs@beta")

    for verb, paused in (("Pause", ["pi-jobs", "pi-jobs@beta"]), ("Resume", [])):
        stage.goes("switch/")
        stage.page.click(control("Pause or resume chosen queues"))
        stage.ticks("pi-jobs", "pi-jobs@beta")
        stage.follows(f"{verb} the chosen…")
        stage.follows(f"{verb} 2 queues")
        assert stage.status().get("pausedQueues", []) == paused
    stage.end()


def test_an_operator_drains_a_host_reroutes_its_queue_and_undrains_it(stage):
    jobs = [stage.enqueue("pi-jobs@beta") for _ in range(2)]
    stage.enter("operator")
    stage.goes("fleet/host/beta/reroute/")
    stage.says("Drain beta first.")
    stage.follows("Drain beta first.")
    stage.says("2 jobs wait in pi-jobs@beta for it")
    stage.fills(Reason="a new disk", Ends_by_itself_after="2h")
    stage.follows("Drain")
    stage.says("It is drained", "a new disk")
    drain = switches.drains(stage.fleet.client, ["beta"])["beta"]
    assert (drain.by, drain.until_ms - drain.since_ms) == ("operator (console)", 2 * 3600_000)
    stage.logs("operator", "host-drain", "beta", "a new disk")

    stage.goes("fleet/host/beta/")
    stage.follows("Reroute its queue")
    stage.says("2 jobs stay")
    stage.ticks("Jobs on folders, too")
    stage.follows("Show what would move")
    stage.says("2 jobs to pi-jobs")
    assert stage.waiting_on("pi-jobs@beta") == jobs
    stage.fills(Reason="others may")
    stage.follows("Move 2 jobs")
    stage.until_says("Moved 2 jobs away from pi-jobs@beta.")
    assert stage.waiting_on("pi-jobs@beta") == []
    assert stage.waiting_on("pi-jobs")[-2:] == jobs
    stage.logs("operator", "host-reroute-ended", "beta", "others may")

    stage.goes("fleet/host/beta/")
    stage.follows("Undrain")
    stage.fills(Reason="it is back")
    stage.follows("Undrain")
    assert switches.drains(stage.fleet.client, ["beta"]) == {}
    stage.logs("operator", "host-undrain", "beta", "it is back")
    stage.end()


def test_an_operator_cancels_one_job_those_that_are_ticked_and_all_of_a_filter(stage):
    client, beta = stage.fleet.client, "pi-jobs@beta"
    one, two, three, kept = (stage.enqueue(beta) for _ in range(4))
    switches.pause(client, (beta, "pi-jobs@alpha"), by="the test", reason="")
    stage.enter("operator")
    stage.goes(f"queue/?queue={beta}")
    stage.follows(one)
    stage.follows("Cancel this job…")
    stage.fills(Reason="not wanted")
    stage.follows("Cancel the job")
    stage.says(f"Job {one} was taken out of the queue: it never runs.")
    assert stage.waiting_on(beta) == [two, three, kept]
    stage.logs("operator", "cancel", one, "not wanted")

    stage.goes(f"queue/?queue={beta}")
    stage.ticks(f"Choose {two}", f"Choose {three}")
    stage.follows("Cancel the chosen…")
    stage.says("These 2 jobs are cancelled, and no other one")
    stage.fills(Reason="neither")
    stage.follows("Cancel 2 jobs")
    assert stage.waiting_on(beta) == [kept]
    stage.logs("operator", "cancel", "2 jobs", "neither")

    many = [stage.enqueue("pi-jobs@alpha") for _ in range(25)]
    stage.goes("queue/?queue=pi-jobs@alpha")
    stage.follows("Cancel all of this filter (25)…")
    stage.fills(Reason="all of them")
    stage.follows("Cancel 25 jobs")
    stage.until_says("25 of 25 jobs cancelled.")
    assert stage.waiting_on("pi-jobs@alpha") == []
    assert not any(stage.fleet.statuses(many))
    before, after = stage.logs("operator", "cancel-ended", "25 jobs", "all of them")
    assert ("stood.queued: 25" in before, "became.dropped: 25" in after) == (True, True)
    switches.resume(client, (beta, "pi-jobs@alpha"))
    stage.end()


def test_an_operator_stops_a_running_job_runs_one_again_and_starts_a_schedule(stage):
    client, stopped, ended = stage.fleet.client, stage.running[0], stage.done[0]
    switches.pause(client, ("*",), by="the test", reason="")
    stage.until_calm()
    stage.enter("operator")
    stage.goes(f"queue/job/{stopped}/")
    stage.follows("Cancel this job…")
    stage.says("Running jobs are stopped.")
    stage.fills(Reason="it loops")
    stage.follows("Cancel the job")
    stage.until_says("1 of 1 job cancelled.")
    assert stage.fleet.record(stopped)["reason"] == "operator-cancel"
    stage.logs("operator", "cancel-ended", stopped, "it loops")

    stage.goes(f"runs/run/{ended}/")
    stage.follows("Run again…")
    stage.fills(Reason="it was mended")
    stage.follows("Run it again")
    stage.says("It waits in line")
    (again,) = stage.waiting_on("pi-jobs@alpha")
    assert stage.scope_of(again) == stage.scope_of(ended)
    stage.logs("operator", "rerun", ended, "it was mended")

    stage.goes("dispatch/schedule/")
    stage.follows("Run now: nightly")
    stage.fills(Reason="at once")
    stage.follows("Run it now")
    stage.says("was put at the end of pi-jobs@alpha.")
    first, started = stage.waiting_on("pi-jobs@alpha")
    assert first == again
    assert stage.scope_of(started) == hash16(str(stage.fleet.ground.home / "nightly")).encode()
    stage.logs("operator", "schedule-started", "nightly", "at once")

    tables = [Table(client, f"pi-jobs@{host}") for host in HOSTS]
    assert all(table.tear_down("tidy", stalls=3, at_ms=epoch_ms(datetime.now(UTC))) for table in tables)
    stage.goes("dispatch/schedule/")
    stage.follows("Restore tidy")
    stage.fills(Reason="found out why")
    stage.follows("Restore it")
    assert all(table.resident()["tidy"].definition for table in tables)
    stage.logs("operator", "schedule-restored", "tidy", "found out why")
    switches.resume(client, ("*",))
    stage.end()


def test_an_admin_adds_edits_and_removes_an_entry_of_the_triggers_file(stage):
    stage.enter("admin")
    stage.goes("dispatch/schedule/")
    stage.follows("Add an entry …")
    stage.fills(Id="weekly", When="0 5 * * 8", Folder="/srv/weekly", Flow="audit", Task="Look.")
    stage.follows("Show before and after")
    stage.says("It has '8' in its day-of-week field")
    stage.fills(When="0 5 * * 1")
    stage.follows("Show before and after")
    stage.says("Before and after", "/srv/weekly")
    assert len(stage.file("triggers")["triggers"]) == 2
    stage.fills(Reason="every Monday")
    stage.follows("Write it")
    added = stage.file("triggers")["triggers"][2]
    assert (added["on"]["id"], added["on"]["pattern"]) == ("weekly", "0 5 * * 1")
    stage.until_says("Every worker (2) has taken this version over.", again=True)
    stage.logs("admin", "trigger-added", 'trigger at index 2 (cron trigger "weekly")', "every Monday")

    stage.goes("dispatch/schedule/")
    stage.follows("Edit weekly")
    stage.fills(Most_turns="9")
    stage.follows("Show before and after")
    stage.follows("Write it")
    assert stage.file("triggers")["triggers"][2] == {**added, "run": {**added["run"], "maxTurns": 9}}
    stage.logs("admin", "trigger-changed", 'trigger at index 2 (cron trigger "weekly")', "")

    stage.goes("dispatch/schedule/")
    stage.follows("Remove weekly")
    stage.fills(Reason="no more")
    stage.follows("Remove it")
    assert [one["on"]["id"] for one in stage.file("triggers")["triggers"]] == ["nightly", "tidy"]
    stage.logs("admin", "trigger-removed", 'trigger at index 2 (cron trigger "weekly")', "no more")
    stage.end()


def test_an_admin_changes_a_setting_a_pause_window_and_a_limit(stage):
    stage.enter("admin")
    stage.goes("settings/")
    stage.follows("Edit the settings …")
    stage.fills(dailyCap="39")
    stage.follows("Show before and after")
    stage.fills(Reason="thrift")
    stage.follows("Write it")
    stage.says("is 39")
    stage.until_says("Every worker (2) has taken this version over.", again=True)
    assert stage.file("settings") == {"dailyCap": 39}
    stage.logs("admin", "settings-changed", "settings file", "thrift")

    rows = (
        (
            "window",
            "pause window",
            "windows",
            {"Scope": "*", "From": "01:00", "To": "02:00", "Last_date": "2020-01-31"},
        ),
        ("limit", "scoped limit", "limits", {"Scope": "owner/repository", "Starts_a_day": "5"}),
    )
    for noun, words, part, texts in rows:
        stage.goes(f"settings/{part}/")
        stage.follows(f"Add a {words} …")
        stage.fills(**texts)
        stage.follows("Show before and after")
        assert stage.file(part)[part] == []
        stage.fills(Reason="as agreed")
        stage.follows("Write it")
        stage.until_says("Every worker (2) has taken this version over.", again=True)
        (row,) = stage.file(part)[part]
        assert row["scope"] == texts["Scope"]
        stage.logs("admin", f"{noun}-added", f"{words} {part}[0]", "as agreed")
        stage.goes(f"settings/{part}/")
        stage.follows(f"Remove {part}[0]")
        stage.follows("Remove it")
        assert stage.file(part)[part] == []
    stage.end()


def test_an_operator_stops_what_runs_on_one_host(stage):
    on_beta = stage.jobs_of("beta")
    stage.enter("operator")
    stage.goes("fleet/host/beta/")
    stage.follows("Drain and stop its jobs…")
    stage.says("it takes no job until it is undrained", *on_beta)
    stage.fills(Reason="it burns")
    stage.follows("Drain beta and stop its jobs")
    stage.until_says(
        f"{len(on_beta)} of {number_of(len(on_beta), 'container is', 'containers are')} confirmed gone."
    )
    stage.fleet.until_over(on_beta, seconds=10)
    assert {stage.fleet.record(job_id)["reason"] for job_id in on_beta} == {"operator-stop"}
    assert stage.jobs_of("alpha")
    assert set(switches.drains(stage.fleet.client, ["alpha", "beta"])) == {"beta"}
    stage.logs("operator", "stop-ended", "beta", "it burns")
    switches.undrain(stage.fleet.client, "beta")
    stage.end()


def test_an_operator_stops_everything(stage):
    running: list[str] = []

    def nothing_ends() -> bool:
        running[:] = [*stage.jobs_of("alpha"), *stage.jobs_of("beta")]
        return bool(running) and set(stage.fleet.statuses(running)) == {b"started"}

    # What the tests before have stopped may be listed until its engine says that it is gone.
    until(nothing_ends, seconds=20, what="what is listed runs")
    stage.enter("operator")
    stage.goes("switch/")
    stage.follows("Pause everything and stop running jobs…")
    stage.says("paused until somebody resumes it", *running)
    stage.fills(Reason="fire")
    stage.follows("Pause everything and stop all jobs")
    stage.until_says(
        f"{len(running)} of {number_of(len(running), 'container is', 'containers are')} confirmed gone."
    )
    stage.fleet.until_over(running, seconds=10)
    assert stage.status()["pausedState"]
    stage.logs("operator", "stop-ended", "the whole fleet", "fire")
    stage.end()


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
