"""The console where no worker is: without scripts, as it refreshes itself, with a thousand jobs to cancel.

One web process and one browser for all of it; each test has Valkey for itself.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dispatch.pages import operation_store
from dispatch.queue.transitions import Step
from hosts import stops, switches
from tests.conftest import absent
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import Host, listed
from tests.harness.browser import browser, missing
from tests.harness.by_words import control
from tests.harness.console_person import Person, kind_of
from tests.harness.fleet import Fleet
from tests.harness.manage import manage
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import until

pytestmark = pytest.mark.chromium

OWN = "pi-jobs@beta"
_USERS = "/admin/auth/user/"
#: Besides the console: Django's own pages beyond the list of users, and what is no page.
_NO_PAGES = ("/admin/auth/", "/admin/logout", "/admin/password_change")
_FILES = (".csv", ".json", ".txt")
#: Of the last day, four of ten failed.
_HISTORY = """
from datetime import UTC, datetime, timedelta
from runs import rows
from runs.outcome import Outcome
from tests.harness.records import a_record
now, failed, completed = datetime.now(UTC), Outcome.FAILED, Outcome.COMPLETED
ends = {n: now - timedelta(minutes=n) for n in range(120)}
became = {n: failed if n % 10 < 4 else completed for n in ends}
rows.write([
    a_record(n, job_id=f"run-{n:03}", started_at=end, ended_at=end, outcome=became[n])
    for n, end in ends.items()
])
"""
#: What of a page nobody sees or can use unless a script does something first.
_BY_SCRIPT_ONLY = """
const none = "option, datalist, svg, input[type=hidden], textarea[hidden], br, script, details:not([open])";
const kept = `${none}, .console-chart-frame, .theme-toggle, .console-scripted, label:has([data-chooses-all])`;
const all = [...document.querySelectorAll("#container *")].filter((one) => !one.closest(kept));
const sends = (form) => form?.querySelector("button:not([type=button]), input[type=submit]");
const isDead = (one) => one.matches("a")
  ? !one.hasAttribute("href") || /^(#|javascript:)/.test(one.getAttribute("href"))
  : one.matches("button, select, textarea, input") && (one.type === "button" || !sends(one.form));
const named = (words, ones) => ones.map((one) => `${words}: ${one.outerHTML.slice(0, 160)}`);
const idle = [...document.querySelectorAll(".theme-toggle, .console-scripted, [data-chooses-all], canvas")];
return [
  ...named("is not seen", all.filter((one) => !one.checkVisibility())),
  ...named("does nothing", [...all.filter(isDead), ...idle].filter((one) => one.checkVisibility())),
];
"""
_STANDS_STILL = "Scripts are off: this page shows how things stood when it was loaded."
_TOLD = "return parseInt(document.querySelector('.operation-counted')?.textContent ?? '0')"


class Plain(Person):
    """Goes without scripts, and notes what only one of them could show or do."""

    def looks(self, *, anew: bool = False) -> None:
        assert self.page.run("return typeof htmx") == "undefined"
        assert _STANDS_STILL in " ".join(self.page.texts(".console-banner")), self.page.url
        self.faults += [f"{self.page.url}: {one}" for one in self.page.run(_BY_SCRIPT_ONLY)]

    def until_says(self, words: str, *, again: bool = True) -> None:
        """Press “Load it again” until the page says so."""

        def said() -> bool:
            self.page.follow(control("Load it again"))
            return words in self.says()

        until(said, seconds=20, what=f"{self.page.url} says {words}")
        self.looks()


class Scripted(Person):
    """Goes with scripts; that pages are usable is looked at elsewhere."""

    def looks(self, *, anew: bool = False) -> None:
        pass


@pytest.fixture(scope="module")
def fleet(valkey_server_url: str) -> Iterator[Fleet]:
    with Fleet(valkey_server_url) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def settings_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "settings.json"
    path.write_text("{}")
    return path


@pytest.fixture(scope="module")
def web(fleet, settings_file, tmp_path_factory) -> Iterator[WebProcess]:
    there = {"PI_SETTINGS_FILE": str(settings_file), "PI_DAILY_CAP": "90"}
    environment = fleet.worker("alpha", environment=there).environment
    with WebProcess(environment, tmp_path_factory.mktemp("web")) as web:
        done = manage(environment, "shell", "--no-imports", "--command", _HISTORY)
        assert done.returncode == 0, done.stderr
        yield web


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    if program := missing():
        absent(f"{program} is not installed")
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def host(fleet) -> Host:
    """A host that beats, with 70 jobs that wait, one that runs and one that sleeps."""
    fleet.client.flushall()
    appear(fleet.client, "alpha")
    host = Host(fleet.client)
    host.beats.register()
    host.enqueue(*(f"local-{number:02}" for number in range(72)))
    host.start()
    host.put_off(host.claim())
    return host


@pytest.fixture
def person(host, web, page, tmp_path) -> Iterator[Plain]:
    page.runs_scripts(is_on=False)
    person = Plain(web=web, page=page, pictures=tmp_path)
    person.enter("admin")
    yield person
    page.runs_scripts(is_on=True)


def test_without_scripts_every_page_is_read(person):
    found = ["/admin/"]
    for path in found:
        person.goes(path.removeprefix("/admin/"))
        person.looks()
        known = {kind_of(one) for one in found}
        for link in person.links():
            is_page = link == _USERS or (link.startswith("/admin/") and not link.startswith(_NO_PAGES))
            if is_page and not urlsplit(link).path.endswith(_FILES) and kind_of(link) not in known:
                known.add(kind_of(link))
                found.append(link)
    assert len(found) >= 19, found
    person.end()


def test_without_scripts_the_overview_has_every_figure_and_the_table_of_its_chart(person):
    person.goes("")
    figures = ("Hosts alive\n1", "Running\n1", "Waiting\n70", "Deferred\n1", "Held\n0", "Failed in 24 h\n48")
    person.says("No queue is paused: jobs start.", *figures, "of 120 runs", "0 of 90 container starts")
    person.says("To look after", "Schedules")
    person.page.click(control("The same as a table"))
    rows = [row.split() for row in person.page.texts(".overview-history tbody tr")]
    assert len(rows) == 48
    assert sum(int(completed) for _, _, completed, *_ in rows) == 72
    person.page.follow(control("Load it again"))
    person.says("Waiting\n70")
    person.end()


def test_without_scripts_lists_are_filtered_and_paged(person):
    ids = "td.id a"
    person.goes("runs/run/")
    assert person.page.texts(ids)[:2] == ["run-000", "run-001"]
    person.page.follow("a[rel=next]")
    assert person.page.texts(ids)[0] == "run-050"
    person.goes("runs/run/")
    person.page.click("select[name=outcome] option[value=failed]")
    person.follows("Filter")
    assert len(person.page.texts(ids)) == 48
    person.page.type("input[name=q]", "run-01")
    person.follows("Filter")
    assert person.page.texts(ids) == [f"run-01{number}" for number in range(4)]

    person.goes("queue/")
    person.follows("Waiting 70")
    person.follows("Next")
    person.says("51 to 70 of 70.")
    person.follows("1000 a page")
    person.says("1 to 70 of 70.")
    person.end()


def test_without_scripts_somebody_pauses_resumes_and_changes_a_setting(person, fleet, settings_file):
    person.goes("switch/")
    person.follows("Pause everything…")
    person.fills(Reason="a release", Ends_by_itself_after="soon")
    person.follows("Pause the whole fleet")
    person.fills(Ends_by_itself_after="90m")
    person.follows("Pause the whole fleet")
    person.says("Paused the whole fleet", "a release")
    assert switches.read(fleet.client, ["*"])
    person.goes("switch/")
    person.follows("Resume everything…")
    person.follows("Resume everything")
    person.says("No queue is paused: jobs start.")
    person.goes("switch/")
    person.page.click(control("Pause or resume chosen queues"))
    person.ticks("pi-jobs")
    person.follows("Pause the chosen…")
    person.follows("Pause pi-jobs")
    person.says("is paused: pi-jobs.")

    person.goes("settings/")
    person.follows("Edit the settings …")
    person.fills(dailyCap="39")
    person.follows("Show before and after")
    person.says("Before and after", "dailyCap: 39 (from: settings file)")
    assert json.loads(settings_file.read_text()) == {}
    person.follows("Write it")
    person.says("is 39")
    assert json.loads(settings_file.read_text()) == {"dailyCap": 39}
    person.end()


def test_without_scripts_one_two_and_many_jobs_are_cancelled(person, fleet):
    client = fleet.client
    person.goes("queue/")
    person.follows("local-02")
    person.follows("Cancel this job…")
    person.follows("Cancel the job")
    person.says("Job local-02 was taken out of the queue: it never runs.")
    person.goes("queue/")
    person.ticks("Choose local-03", "Choose local-04")
    person.follows("Cancel the chosen…")
    person.follows("Cancel 2 jobs")
    assert listed(client)[0] == "local-05"

    person.goes("queue/?section=waiting")
    person.follows("Cancel all of this filter (67)…")
    person.fills(Reason="all of them")
    person.follows("Cancel 67 jobs")
    person.until_says("67 of 67 jobs cancelled.")
    assert listed(client) == []
    person.logs("admin", "cancel-ended", "67 jobs", "all of them")
    person.end()


@pytest.fixture
def scripted(host, web, page, tmp_path) -> Scripted:
    person = Scripted(web=web, page=page, pictures=tmp_path)
    person.enter("operator")
    return person


def test_the_overview_refreshes_itself_without_loading_the_page_again(scripted, host):
    page = scripted.page
    scripted.goes("")
    page.run("window.isTheSamePage = true")
    scripted.says("Waiting\n70", "No queue is paused")
    host.enqueue("local-later")
    switches.pause(host.client, ["*"], by="ann", reason="a release")
    until(lambda: "Waiting\n71" in scripted.says(), seconds=11, what="the figure is fetched again")
    scripted.says("is paused", "a release")
    assert page.run("return window.isTheSamePage && performance.getEntriesByType('navigation').length") == 1


def test_a_thousand_ticked_jobs_are_cancelled_as_one_action_while_some_of_them_start(scripted, fleet, host):
    """Before it is confirmed 50 start and 10 are taken; while it goes on 40 start, of which 20 end."""
    client, page = fleet.client, scripted.page
    client.flushall()
    host.beats.register()
    beta = Host(client, name="beta", host_id="bbbb", queue=OWN)
    beta.beats.register()
    host.enqueue(*(f"local-a{number:03}" for number in range(960)))
    beta.enqueue(*(f"local-b{number:03}" for number in range(40)))

    scripted.goes("queue/?section=waiting")
    scripted.follows("1000 a page")
    scripted.says("1 to 1000 of 1000.")
    page.click("#queue-of-waiting [data-chooses-all]")
    scripted.follows("Cancel the chosen…")
    scripted.says("These 1000 jobs are cancelled, and no other one", "And 980 more")
    running = [host.start().job_id for _ in range(50)]
    taken = [host.claim() for _ in range(10)]
    scripted.fills(Reason="the wrong branch")
    page.click(control("Cancel 1000 jobs"))
    until(lambda: _done(client) >= 50, seconds=10, what="it is under way")
    for number in range(40):
        claimed = beta.start()
        if number % 2:
            beta.end(claimed)
        else:
            running.append(claimed.job_id)

    page.run("window.isTheSamePage = true")
    until(lambda: 0 < _told(page) < 1000, seconds=9, what="it tells how far it is")
    with _stopping(client, running):
        until(lambda: not _told(page), seconds=20, what="it is over")
    scripted.says("980 of 1000 jobs cancelled.", "the wrong branch", "1 to 200 of 1000")
    scripted.says("910 were taken out of their queues.", "70 are being stopped by their workers.")
    scripted.says("20 had ended before.")
    assert page.run("return window.isTheSamePage")
    # What is left of them stands first.
    told = page.texts("#operation-rows tbody tr")
    assert [row.split()[0] for row in told[:20]] == [f"local-b{number:03}" for number in range(1, 40, 2)]
    assert all("is not there to be cancelled any more: completed" in row for row in told[:20])
    assert (len(told), "was taken out of the queue" in told[20]) == (200, True)
    assert (listed(client), listed(client, OWN)) == ([], [])
    assert {host.begin(one) for one in taken} == {Step.LOST}
    before, after = scripted.logs("operator", "cancel-ended", "1000 jobs", "the wrong branch")
    assert "stood.in-hand: 10stood.queued: 940stood.started: 50" in before
    assert "became.dropped: 910became.ended: 20became.stopping: 70" in after
    entries = page.texts(".log-actions tbody tr")
    assert sum("cancel 1000 jobs the wrong branch" in row for row in entries) == 1
    assert sum("the wrong branch" in row for row in entries) == 2


def _told(page) -> int:
    """How many are done, as the page of an action under way says."""
    return page.run(_TOLD)


def _done(client) -> int:
    found = operation_store.latest(client, 1)
    return found[0].done if found else 0


@contextlib.contextmanager
def _stopping(client, job_ids):
    """A worker that stops each of these jobs when it is asked to."""
    ended = threading.Event()

    def work():
        while not ended.wait(0.02):
            asked = stops.read(client, host="alpha", containers="x", job_ids=job_ids).cancels
            for job_id, request_id in asked.items():
                stops.answer_cancel(client, job_id, request_id=request_id, host="alpha")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
