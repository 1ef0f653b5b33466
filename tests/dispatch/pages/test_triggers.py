"""The editor of the triggers file, run now and restore: who may, what is shown first, what is written."""

from __future__ import annotations

import json
import os
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client, override_settings

from dispatch.pages.audit_digest import digest
from dispatch.schedules.table import Table
from pidispatch_site import conf
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.queuekit import everything
from tests.dispatch.schedulekit import ALPHA, Bench, entry, schedule
from tests.dispatch.triggers.one_shots import KEY

LIST = "/admin/dispatch/schedule/"
ADD, EDIT, REMOVE = f"{LIST}add/", f"{LIST}entry/0/", f"{LIST}entry/0/remove/"
RUN, RESTORE = f"{LIST}run/nightly/", f"{LIST}restore/nightly/"
SECRET = "/srv/secret-place"
SHOT = {"type": "issue", "action": ["closed"], "number": 7, "once": True, "disarmed": {"at": "then"}}


class Site:
    """A site beside the bench's file and server, seen by somebody."""

    def __init__(self, bench, environment):
        self.bench, self.path = bench, bench.file.path
        self._environment = environment

    def as_(self, group="admin", *more):
        user = User.objects.create_user(f"{group}-{User.objects.count()}", is_staff=True)
        if group:
            user.groups.add(Group.objects.get(name=group))
        user.user_permissions.add(*Permission.objects.filter(codename__in=more))
        self._client = Client()
        self._client.force_login(user)
        return self

    def ask(self, address, sent=None, **variables):
        environment = {k: v for k, v in {**self._environment, **variables}.items() if v is not None}
        with override_settings(PIDISPATCH_ENVIRONMENT=environment, PIDISPATCH=conf.load(self._environment)):
            if sent is None:
                return self._client.get(address)
            return self._client.post(address, sent)

    def text(self, response):
        assert response.status_code == 200
        return response.content.decode()

    def lock(self, address=ADD):
        return re.search(r'name="lock" value="(\w+)"', self.text(self.ask(address)))[1]

    def shown(self, address, **sent):
        return self.text(self.ask(address, {"lock": self.lock(address), **sent}))

    def holds(self, *entries):
        self.bench.entries = entries
        return self.bench.file.content

    @property
    def entries(self):
        return json.loads(self.path.read_text())["triggers"]


@pytest.fixture
def site(valkey, valkey_url, tmp_path, db):
    bench = Bench(valkey, tmp_path, entries=[entry(pattern="5 * * * *", image="img:1"), entry("second")])
    bench.host()
    bench.install(schedule(pattern="5 * * * *", image="img:1"))
    places = {"PI_TRIGGERS_FILE": str(bench.file.path), "PI_STATE_DIR": str(tmp_path)}
    return Site(bench, {"VALKEY_URL": valkey_url, "PI_WORKER_NAME": "alpha", "TZ": "UTC", **places})


def sent_json(made, **more):
    return {"way": "json", "entry": json.dumps(made), **more}


FORM = {
    "way": "form",
    "id": "weekly",
    "pattern": "@weekly",
    "folder": "/",
    "flow": "audit",
    "task": "<b>look",
}


@pytest.mark.parametrize("address", [ADD, EDIT, REMOVE, RUN, RESTORE])
def test_nobody_changes_a_thing_without_the_permission(site, address):
    file, before = site.path.read_bytes(), everything(site.bench.client)
    site.as_("viewer")
    seen = [site.ask(address).status_code, site.ask(address, {"step": "write"}).status_code]
    site._client = Client()
    seen += [site.ask(address).status_code, site.ask(address, {"step": "write"}).status_code]
    site.as_("operator")
    is_operators = address in {RUN, RESTORE}

    assert seen == [403, 403, 302, 302]
    assert site.ask(address).status_code == (200 if is_operators else 403)
    assert site.as_().ask(address).status_code == 200
    assert (site.path.read_bytes(), everything(site.bench.client)) == (file, before)
    assert not LogEntry.objects.exists()


def test_an_entry_is_shown_before_and_after_and_written_once_it_was_seen(site):
    site.as_()

    page = site.shown(ADD, **FORM)

    assert "<b>" not in page
    assert "&lt;b&gt;look" in page
    assert "will be added" in page
    assert '<tr class="change-added">' in page
    assert len(site.entries) == 2
    hidden = re.search(r'<textarea name="entry" hidden>\n(.*?)</textarea>', page, re.DOTALL)[1]
    entered = hidden.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">")

    made = {"way": "json", "entry": entered, "lock": site.lock(), "step": "write", "reason": "why not"}
    assert site.ask(ADD, made).headers["Location"] == LIST
    assert site.entries[2]["on"] == {"type": "cron", "id": "weekly", "pattern": "@weekly"}
    assert site.entries[2]["run"]["task"] == "<b>look"
    logged = json.loads(LogEntry.objects.get().change_message)
    assert (logged["action"], logged["reason"], logged["before"]) == ("trigger-added", "why not", None)
    assert logged["after"]["on"] == site.entries[2]["on"]
    assert logged["after"]["run"].items() >= {"flow": "audit", "task": digest("<b>look")}.items()
    page = site.text(site.ask(LIST))
    assert "was added" in page
    assert "has not said so yet" in page
    viewers = site.as_("viewer").text(site.ask("/admin/log/"))
    assert "trigger-added" in viewers
    assert "look" not in viewers


def test_an_edit_keeps_what_the_form_has_no_field_for_and_a_removal_shows_what_goes(site):
    site.as_()
    form = {
        "way": "form",
        "id": "nightly",
        "pattern": "6 * * * *",
        "tz": "UTC",
        "folder": "/",
        "flow": "audit",
    }

    page = site.shown(EDIT, **form, task="look")
    assert page.count('<tr class="change-added">') == 1
    assert "will be written anew, indented by two spaces" in page
    assert "was written anew" not in page
    assert 'value="6 * * * *"' in site.shown(EDIT, **sent_json(entry(pattern="6 * * * *"), step="back"))
    site.ask(EDIT, {**form, "task": "look", "lock": site.lock(), "step": "write"})
    assert site.entries[0] == entry(pattern="6 * * * *", image="img:1")

    page = site.text(site.ask(REMOVE))
    assert "will be removed" in page
    assert "move up by one" in page
    assert len(site.entries) == 2
    site.ask(REMOVE, {"lock": site.lock(), "step": "write"})
    assert [one["on"]["id"] for one in site.entries] == ["second"]
    actions = [json.loads(one.change_message) for one in LogEntry.objects.order_by("id")]
    assert [one["action"] for one in actions] == ["trigger-changed", "trigger-removed"]
    assert actions[0]["before"]["on"]["pattern"] == "5 * * * *"


@pytest.mark.parametrize("step", ["show", "write"])
@pytest.mark.parametrize("address", [ADD, EDIT, REMOVE])
def test_what_was_changed_meanwhile_is_not_overwritten(site, address, step):
    site.as_()
    lock = site.lock()
    file = site.holds(entry("other"), entry("third"))

    page = site.text(site.ask(address, {**FORM, "lock": lock, "step": step}))

    assert site.path.read_bytes() == file
    if (address, step) != (REMOVE, "show"):
        assert "was changed meanwhile" in page
    # From there it goes on with the file as it is now.
    assert site.lock() in page


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        pytest.param(
            {**FORM, "id": "a:b"}, "It is &#x27;a:b&#x27;; allowed is a name", id="beside its field"
        ),
        pytest.param({**FORM, "folder": ""}, "is missing", id="a field that is needed"),
        pytest.param({**FORM, "id": "second"}, "as that of the trigger at index 1", id="an id twice"),
        pytest.param({"way": "json", "entry": "{"}, "is not JSON", id="no JSON"),
        pytest.param({"way": "json", "entry": "[]"}, "is no object", id="no entry"),
        pytest.param({"way": "json"}, "is not JSON", id="nothing"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(site, sent, words):
    page = site.as_().shown(ADD, step="write", **sent)

    assert words in page
    assert len(site.entries) == 2
    assert not LogEntry.objects.exists()
    assert all(f'value="{sent[key]}"' in page for key in ("id", "pattern") if key in sent)


@pytest.mark.parametrize(
    ("address", "change", "is_refused"),
    [
        (EDIT, {"image": "other:1"}, True),
        (EDIT, {"image": "img:1", "secrets": {"A": "b"}}, True),
        (EDIT, {}, True),
        (EDIT, {"image": "img:1", "flow": "other"}, True),
        (EDIT, {"image": "img:1", "folder": "/tmp"}, True),
        (EDIT, {"image": "img:1", "maxTurns": 3}, True),
        (EDIT, {"image": "img:1"}, False),
        (ADD, {"skillsDir": "/"}, True),
        (ADD, {}, False),
    ],
)
def test_privileged_keys_are_kept_by_who_may_not_change_them(site, address, change, is_refused):
    made = entry("third" if address == ADD else "nightly", "7 * * * *", **change)
    site.as_("operator", "configure_fleet")

    page = site.shown(address, **sent_json(made, step="show"))
    site.ask(address, sent_json(made, step="write", lock=site.lock()))

    assert ("You may not change run." in page) is is_refused
    assert (made in site.entries) is not is_refused
    if address == EDIT:
        assert "Kept as it is" in site.text(site.ask(EDIT))


def test_of_an_entry_with_a_privileged_key_the_form_changes_only_when_it_starts(site):
    site.holds(entry(image="img:1", github=True))
    site.as_("operator", "configure_fleet")
    page = site.text(site.ask(EDIT))
    assert re.search(r'name="folder"[^>]* readonly', page)
    assert re.search(r'name="github"[^>]* checked disabled', page)
    assert not re.search(r'name="pattern"[^>]* readonly', page)

    # As a browser sends it: without the box that is not free; or as somebody who plays browser.
    sent = {**FORM, "id": "nightly", "tz": "UTC", "folder": "/elsewhere", "lock": site.lock()}
    assert 'name="github" id="trigger-github" checked disabled' in site.shown(EDIT, **{**sent, "id": "a:b"})
    site.ask(EDIT, {**sent, "step": "write"})

    assert site.entries == [entry(pattern="@weekly", image="img:1", github=True)]
    assert "readonly" not in site.as_().text(site.ask(EDIT))


def test_a_spent_one_shot_that_is_armed_again_is_forgotten(site):
    shot = {"on": SHOT, "run": {"kind": "github", "flow": "fix"}}
    armed = {**shot, "on": {key: one for key, one in SHOT.items() if key != "disarmed"}}
    site.holds(shot)
    site.bench.client.hset(KEY, "job", "gh-9")
    site.as_().ask(EDIT, sent_json(armed, lock=site.lock(), step="write"))

    assert (site.entries, site.bench.client.exists(KEY)) == ([armed], 0)
    page = site.as_().ask(EDIT, sent_json(shot, lock=site.lock(), step="write"), VALKEY_URL=NOBODY)
    assert page.status_code == 302
    site.ask(EDIT, sent_json(armed, lock=site.lock(), step="write"), VALKEY_URL=NOBODY)
    assert "may be refused once" in site.text(site.ask(LIST))


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"PI_TRIGGERS_FILE": "/nowhere/t.json"}, "does not exist"),
        ({"PI_TRIGGERS_FILE": ""}, "PI_TRIGGERS_FILE"),
        ({"VALKEY_URL": NOBODY}, ""),
    ],
)
def test_a_file_or_server_that_is_away_is_said_and_nothing_breaks(site, variables, words):
    site.as_()
    addresses = (ADD, EDIT, REMOVE, RUN, RESTORE, f"{LIST}entry/99999999999999999999/", LIST, f"{LIST}live/")
    pages = [site.text(site.ask(address, **variables)) for address in addresses]

    assert all("Traceback" not in page for page in pages)
    assert words in pages[1]
    if "PI_TRIGGERS_FILE" in variables:
        site.ask(ADD, {**FORM, "step": "write", "lock": "x"}, **variables)
        assert len(site.entries) == 2


def test_a_site_that_is_told_of_no_file_offers_no_editor_and_names_the_variable(site):
    told = "To add an entry here, set <code>PI_TRIGGERS_FILE</code>"
    site.as_()
    with_file, without = (site.text(site.ask(LIST, **told)) for told in ({}, {"PI_TRIGGERS_FILE": None}))

    assert (ADD in with_file, told in with_file) == (True, False)
    assert (ADD in without, told in without) == (False, True)
    assert told not in site.as_("viewer").text(site.ask(LIST, PI_TRIGGERS_FILE=None))


def test_a_file_is_made_where_that_is_asked_for(site, tmp_path):
    path = tmp_path / "new.json"
    site.as_()
    lock = re.search(r'lock" value="(\w+)"', site.text(site.ask(ADD, PI_TRIGGERS_FILE=str(path))))[1]
    sent = sent_json(entry("first"), step="write", lock=lock)

    refused = site.text(site.ask(ADD, sent, PI_TRIGGERS_FILE=str(path)))
    assert "does not exist" in refused
    assert not path.exists()
    site.ask(ADD, {**sent, "create": "on"}, PI_TRIGGERS_FILE=str(path))
    assert json.loads(path.read_text()) == {"triggers": [entry("first")]}


def test_a_schedule_runs_now_once_however_often_the_form_is_sent(site):
    page = site.as_("operator").text(site.ask(RUN))
    at = re.search(r'name="at" value="(\d+)"', page)[1]
    answers = [site.ask(RUN, {"at": at, "reason": "now"}).status_code for _ in range(2)]

    assert "put at the end of pi-jobs@alpha" in page
    assert answers == [302, 302]
    assert site.bench.client.llen(f"rq:queue:{ALPHA}") == 1
    assert "is there already" in site.text(site.ask(LIST))
    logged = json.loads(LogEntry.objects.get().change_message)
    assert logged["after"] == {"job": f"manual:nightly:{at}", "queue": ALPHA}
    assert site.text(site.ask(f"{LIST}run/unknown/", {})).count("no such schedule") == 1


def test_a_schedule_that_was_taken_down_is_put_back(site):
    table = Table(site.bench.client, ALPHA)
    site.as_("operator")
    assert "not taken down" in site.text(site.ask(RESTORE))
    assert table.tear_down("nightly", stalls=4, at_ms=site.bench.now_ms)

    page = site.text(site.ask(RESTORE))
    assert "on pi-jobs@alpha" in page
    assert "Restore nightly" in site.text(site.ask(LIST))
    site.ask(RESTORE, {"reason": "mended"})

    assert site.bench.client.zscore("sched:pi-jobs@alpha:next", "nightly")
    assert json.loads(LogEntry.objects.get().change_message)["after"] == {"restored": [ALPHA]}
    assert "Restore nightly" not in site.text(site.ask(LIST))


@pytest.mark.parametrize(("group", "is_shown"), [("viewer", False), ("operator", False), ("admin", True)])
def test_folders_files_and_what_is_wrong_are_for_who_may_change_them(site, group, is_shown):
    site.as_(group)
    lists = (LIST, f"{LIST}live/")
    whole = entry(folder=SECRET, command=f"do {SECRET}")
    del whole["run"]["flow"], whole["run"]["task"]
    site.holds(whole)
    pages = [site.text(site.ask(address)) for address in lists]
    site.holds(whole, {"on": SECRET, "run": {}})
    broken = [site.text(site.ask(address)) for address in lists]
    broken += [site.text(site.ask(RUN, {}))] if group != "viewer" else []

    assert all((SECRET in page) is is_shown for page in pages)
    assert all((str(site.path) in page) is is_shown for page in pages + broken)
    assert not any(SECRET in page for page in broken) or is_shown


def test_the_list_says_who_has_the_file(site):
    site.as_()
    assert "The worker of alpha has taken this version over" in site.text(site.ask(LIST))
    site.bench.host("bravo", fpTriggers="")
    site.bench.host("alpha", fpTriggers="")
    page = site.text(site.ask(LIST))
    assert "Set PI_TRIGGERS_FILE for it" in page
    assert "bravo reads no such file" in page
    site.bench.host("alpha", fpTriggers="other")
    assert "has not said so yet" in site.text(site.ask(LIST))
    os.utime(site.path, (1, 1))
    assert "has not taken this version over for" in site.text(site.ask(f"{LIST}live/"))


def test_what_comes_of_a_change_itself_is_no_alarm_until_workers_had_the_time(site):
    site.as_()
    site.holds(entry("fresh"))
    site.bench.host("alpha", fpTriggers="before", fpCron="before")
    site.bench.host("bravo", fpTriggers="before", fpCron="before")

    page = site.text(site.ask(LIST))
    assert "bravo has not said so yet" in page
    assert "workers are taking the change of the file over" in page
    assert re.search(r'console-calm">… (refused|not-installed)<', page)
    assert not any(one in page for one in ("another version", "Hosts disagree"))
    # What was missed before is still to be looked after.
    assert ", 1 to look after" in page
    os.utime(site.path, (1, 1))
    page = site.text(site.ask(LIST))
    assert all(one in page for one in ("another version", "Hosts disagree", ", 2 to look after"))
