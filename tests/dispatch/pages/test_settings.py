"""The pages of settings: what is in force, who has each file, and edits that were seen first."""

from __future__ import annotations

import html
import json
import os
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.test import Client, override_settings
from django.utils.functional import SimpleLazyObject

from dispatch.console.adoption import digest_of
from dispatch.pages.audit_digest import digest
from dispatch.pages.configured import NO_CONFIGURATION
from pidispatch_site import conf
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import everything

HOME = "/admin/settings/"
OVERLAY, WINDOWS, LIMITS = f"{HOME}overlay/", f"{HOME}windows/", f"{HOME}limits/"
OPEN = (HOME, f"{HOME}live/", *(f"{HOME}taken/{kind}/" for kind in ("overlay", "windows", "limits")))
EDITORS = (
    *(OVERLAY, WINDOWS, f"{WINDOWS}add/", f"{WINDOWS}0/", f"{WINDOWS}0/remove/"),
    *(LIMITS, f"{LIMITS}add/", f"{LIMITS}0/", f"{LIMITS}0/remove/"),
)
SECRET = "/srv/secret-place"
WINDOW = {"scope": f"{SECRET}/<b>", "from": "01:00", "to": "02:00", "note": [1]}
SECOND = {"scope": "acme/web", "allDay": True}
LIMIT = {"scope": f"{SECRET}/<b>", "day": 3}
FILES = {
    "settings": {"dailyCap": 20, "secretProfiles": {"vault": f"{SECRET}/resolve"}, "dialyCap": 1},
    "windows": {"windows": [WINDOW, SECOND]},
    "limits": {"version": 1, "limits": [LIMIT, {"scope": "acme/web", "week": 7}]},
}
VARIABLES = {
    "PI_SETTINGS_FILE": "settings",
    "PI_PAUSE_WINDOWS_FILE": "windows",
    "PI_SCOPED_LIMITS_FILE": "limits",
}
FIELDS = {"way": "form", "scope": "acme/new"}
ADDED = {WINDOWS: {**FIELDS, "from": "03:00", "to": "04:00"}, LIMITS: {**FIELDS, "day": "4"}}


class Site:
    """A site beside the files of the host alpha, seen by somebody."""

    def __init__(self, client, url, folder):
        self.client, self._folder = client, folder
        places = {name: str(self.path(kind)) for name, kind in VARIABLES.items()}
        self._environment = {
            "VALKEY_URL": url,
            "PI_WORKER_NAME": "alpha",
            "PI_STATE_DIR": str(folder),
            **places,
        }
        for kind, content in FILES.items():
            self.put(kind, content)

    def path(self, kind):
        return self._folder / f"{kind}.json"

    def put(self, kind, content):
        text = content if isinstance(content, str) else json.dumps(content)
        self.path(kind).write_text(text)

    def holds(self, kind):
        return json.loads(self.path(kind).read_text())

    def bytes(self):
        return {kind: self.path(kind).read_bytes() for kind in FILES}

    def worker(self, name="alpha", **changes):
        fields = {"fpSettings": "settings", "fpPause": "windows", "fpLimits": "limits"}
        said = {field: digest_of(self.path(kind).read_bytes()) for field, kind in fields.items()}
        appear(self.client, name, **{**said, **changes})

    def as_(self, group="admin"):
        user = User.objects.create_user(f"{group}-{User.objects.count()}", is_staff=True)
        if group:
            user.groups.add(Group.objects.get(name=group))
        self.browser = Client()
        self.browser.force_login(user)
        return self

    def ask(self, address, sent=None, **variables):
        environment = {k: v for k, v in {**self._environment, **variables}.items() if v is not None}
        config = SimpleLazyObject(lambda: conf.load(environment))
        with override_settings(PIDISPATCH_ENVIRONMENT=environment, PIDISPATCH=config):
            return self.browser.get(address) if sent is None else self.browser.post(address, sent)

    def text(self, *asked, **variables):
        response = self.ask(*asked, **variables)
        assert response.status_code == 200
        return response.content.decode()

    def lock(self, address, **variables):
        return re.search(r'name="lock" value="(\w+)"', self.text(address, **variables))[1]

    def send(self, address, sent, *, step="show", **variables):
        return self.ask(address, {"lock": self.lock(address), "step": step, **sent}, **variables)

    def shown(self, address, sent, *, step="show"):
        return self.send(address, sent, step=step).content.decode()

    def carry_out(self, address, sent):
        """Go the whole way: to the page with before and after, and on with what that page sends."""
        page = self.shown(address, sent)
        hidden = re.findall(r'<textarea name="([\w-]+)" hidden>\n(.*?)</textarea>', page, re.DOTALL)
        lock = re.search(r'name="lock" value="(\w+)"', page)[1]
        kept = {name: html.unescape(text) for name, text in hidden}
        return page, self.ask(address, {**kept, "lock": lock, "step": "write", "reason": "why not"})

    def logged(self):
        return [json.loads(one.change_message) for one in LogEntry.objects.order_by("id")]


@pytest.fixture
def site(valkey, valkey_url, tmp_path, db):
    made = Site(valkey, valkey_url, tmp_path)
    made.worker()
    return made


def test_who_may_not_configure_sees_the_values_and_changes_nothing(site):
    files, before = site.bytes(), everything(site.client)
    site.as_("")
    seen = [site.ask(address).status_code for address in (*OPEN, *EDITORS)]
    assert set(seen) == {403}
    site.browser = Client()
    assert {site.ask(address).status_code for address in (*OPEN, *EDITORS)} == {302}
    for group in ("viewer", "operator"):
        site.as_(group)
        assert {site.ask(address).status_code for address in OPEN} == {200}
        assert {site.ask(address, {"step": "write"}).status_code for address in OPEN} <= {403, 405}
        for address in EDITORS:
            assert site.ask(address).status_code == 403
            assert site.ask(address, {"step": "write", "lock": "x"}).status_code == 403
    site.as_()
    assert {site.ask(address).status_code for address in (*OPEN, *EDITORS)} == {200}
    assert {site.ask(address, {}).status_code for address in (WINDOWS, LIMITS)} == {405}

    assert (site.bytes(), everything(site.client)) == (files, before)
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("broken", [False, True])
def test_a_viewer_is_told_of_no_path_and_no_scope(site, broken):
    if broken:
        site.put("settings", {**FILES["settings"], "dailyCap": SECRET})
        site.put("windows", {"windows": [{**WINDOW, "from": SECRET}]})
        site.put("limits", f'{{"{SECRET}": ')
    site.as_("viewer")
    pages = [site.text(address) for address in OPEN]

    assert not any(SECRET in page or str(site.path("x").parent) in page or "acme" in page for page in pages)
    page = html.unescape(pages[0])
    if broken:
        assert page.count("Does not load") == 3
        assert "every job of this host is refused" in page
    else:
        row = r"dailyCap<span[^>]*>Container starts per .*</th>\s*<td[^>]*><strong>20</strong></td>\s*"
        assert re.search(f"{row}<td[^>]*>settings file", page)
        assert re.search(
            r"secretProfiles<span[^>]*>[^<]*</span></th>\s*<td[^>]*><strong>vault</strong>", page
        )
        assert "2 pause windows, " in page
        assert "2 scoped limits." in page
        assert page.count("The worker of alpha has taken this version over.") == 3
    assert "Edit the" not in page
    assert "Edit the" in site.as_().text(HOME)


@pytest.mark.parametrize(("group", "is_told"), [("viewer", False), ("admin", True)])
def test_what_cannot_be_read_is_said_with_its_path_to_who_may_configure(site, group, is_told):
    site.as_(group)
    site.path("settings").unlink()
    site.path("settings").mkdir()
    page = site.text(HOME)
    assert 'role="alert"' in page
    assert (f"{site.path('settings')}: cannot be read: it is no regular file" in page) is is_told
    assert (str(site.path("settings")) in page) is is_told

    page = site.text(HOME, PI_CONCURRENCY="many")
    assert 'role="alert"' in page
    assert "Cannot be told: the configuration does not load" in page
    assert "2 pause windows, " in page
    if is_told:
        assert 'role="alert"' in site.text(OVERLAY, PI_CONCURRENCY="many")
        assert "is set to an empty value" in site.text(WINDOWS, PI_PAUSE_WINDOWS_FILE="")


@pytest.mark.parametrize("group", ["viewer", "admin"])
def test_a_configuration_that_does_not_load_is_said_without_its_values(site, group):
    site.as_(group)
    addresses = (HOME, f"{HOME}live/", f"{HOME}taken/overlay/", *([OVERLAY] if group == "admin" else []))
    pages = [site.text(address, PI_CONCURRENCY="sentinel") for address in addresses]

    assert not any("sentinel" in page for page in pages)
    said = NO_CONFIGURATION.partition(" `")[0]
    says = [said in html.unescape(page) for page in pages]
    assert says == [True, False, *[True] * (len(pages) - 2)]
    assert "Cannot be told: the configuration does not load" in pages[1]
    assert f'href="{OVERLAY}"' not in pages[0]


def test_keys_are_set_and_unset_together_once_before_and_after_were_seen(site):
    site.as_()
    files = site.bytes()
    sent = {"value-dailyCap": "30", "value-model": "<i>m", "unknown-0": "on"}

    page, done = site.carry_out(OVERLAY, sent)

    assert SECRET not in page
    lines = re.findall(r"change-(added|removed)\"><td.*?<code>(.*?)</code>", page, re.DOTALL)
    assert ("removed", "dailyCap: 20 (from: settings file)") in lines
    assert ("added", "model: &lt;i&gt;m (from: settings file)") in lines
    assert ("removed", "dialyCap: means nothing") in lines
    assert "this host's alone" not in html.unescape(page)
    assert done.headers["Location"] == OVERLAY
    profiles = FILES["settings"]["secretProfiles"]
    assert site.holds("settings") == {"dailyCap": 30, "secretProfiles": profiles, "model": "<i>m"}
    assert {kind: site.bytes()[kind] for kind in ("windows", "limits")}.items() <= files.items()
    (logged,) = site.logged()
    assert (logged["action"], logged["reason"]) == ("settings-changed", "why not")
    assert logged["before"]["dailyCap"] == "20 (from: settings file)"
    assert logged["after"]["dailyCap"] == "30 (from: settings file)"
    page = site.text(OVERLAY)
    assert SECRET not in page
    assert "Now dailyCap is 30 (from: settings file)." in page
    assert "dialyCap is no longer in the file" in page
    assert "has not said so yet" in page
    assert "settings-changed" in site.as_("viewer").text("/admin/log/")


def test_a_change_that_changes_nothing_is_said_and_not_written(site):
    site.as_()
    before = site.bytes()
    for address, sent in ((OVERLAY, {}), (f"{WINDOWS}0/", {"way": "json", "row": json.dumps(WINDOW)})):
        assert "Nothing to change" in site.shown(address, sent)
        assert site.send(address, sent, step="write").status_code == 302
    assert site.bytes() == before
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"value-dailyCap": "many"}, "It cannot be set to this; allowed is a whole number from 1 up."),
        ({"value-dailyCap": "3", "unset-dailyCap": "on"}, "It is both set and unset"),
        ({"value-secretProfiles": "x"}, "secretProfiles is edited by hand"),
    ],
)
def test_what_is_wrong_with_a_setting_is_said_and_what_was_typed_stays(site, sent, words):
    site.as_()
    files = site.bytes()
    page = site.shown(OVERLAY, {**sent, "value-model": "kept"}, step="write")

    assert words in html.unescape(page)
    assert 'value="kept"' in page
    assert site.bytes() == files
    back = site.shown(OVERLAY, {"value-model": "kept"}, step="back")
    assert 'value="kept"' in back


def test_a_settings_file_that_is_wrong_is_mended_by_its_keys_or_by_hand(site):
    site.as_()
    site.put("settings", {"weeklyCap": "none", "model": "m"})
    assert "The file has a value that is not allowed" in site.text(OVERLAY)
    page, _ = site.carry_out(OVERLAY, {"unset-weeklyCap": "on"})
    assert "weeklyCap: a value that is not allowed" in page
    assert "nothing bounds that any more" in page
    assert site.holds("settings") == {"model": "m"}

    for content in ("{", "[]"):
        site.put("settings", content)
        assert "every job of this host is refused" in site.text(OVERLAY)
        assert "every job of this host is refused" in site.text(OVERLAY, {"step": "write"})
        assert site.path("settings").read_text() == content


def test_a_first_setting_makes_the_file(site):
    site.as_()
    site.path("settings").unlink()
    assert "there is no such file" in site.text(OVERLAY)
    page, _ = site.carry_out(OVERLAY, {"value-concurrency": "3"})
    assert "it will be made" in page
    assert site.holds("settings") == {"concurrency": 3}


@pytest.mark.parametrize(
    ("pages", "kind", "slug"), [(WINDOWS, "windows", "window"), (LIMITS, "limits", "limit")]
)
def test_rows_come_change_and_go_once_before_and_after_were_seen(site, pages, kind, slug):
    site.as_()
    first, second = FILES[kind][kind]
    assert "&lt;b&gt;" in site.text(pages)
    assert "<b>" not in site.text(pages)

    page, done = site.carry_out(f"{pages}add/", ADDED[pages])
    assert (f"{kind}[2], for &#x27;acme/new&#x27;, will be added." in page, done.headers["Location"]) == (
        True,
        pages,
    )
    assert site.holds(kind)[kind][:2] == [first, second]
    assert site.holds(kind)[kind][2]["scope"] == "acme/new"
    page = site.text(pages)
    assert f"{kind}[2] was added" in page
    assert "has not said so yet" in page

    changed = {**ADDED[pages], "scope": first["scope"]}
    page, _ = site.carry_out(f"{pages}0/", changed)
    assert "<b>" not in page
    assert "No job of this host has the scope" in page
    kept = {"note": first["note"]} if "note" in first else {}
    assert site.holds(kind)[kind][0].items() >= {"scope": first["scope"], **kept}.items()
    assert site.holds(kind)[kind][0] != first

    page, _ = site.carry_out(f"{pages}1/remove/", {})
    assert "acme/web" in page
    assert [row["scope"] for row in site.holds(kind)[kind]] == [first["scope"], "acme/new"]
    assert site.holds(kind).keys() == FILES[kind].keys()
    found = site.logged()
    assert [one["action"] for one in found] == [f"{slug}-added", f"{slug}-changed", f"{slug}-removed"]
    assert (found[0]["before"], found[2]["after"]) == (None, None)
    # What the row is about stands there as a digest.
    for at, row in (("before", first), ("after", site.holds(kind)[kind][0])):
        kept = {key: value for key, value in found[1][at].items() if key != "rest"}
        assert kept == {**{key: row[key] for key in kept}, "scope": digest(row["scope"])}
    viewers = site.as_("viewer").text("/admin/log/")
    assert f"{slug}-added" in viewers
    assert SECRET not in viewers
    assert "acme" not in viewers


def test_a_row_in_json_goes_back_to_its_form(site):
    site.as_()
    page = site.shown(
        f"{WINDOWS}1/", {"way": "json", "row": '{"scope": "x", "days": ["Sunday"]}'}, step="back"
    )

    assert re.search(r'value="sun" checked', page)
    assert 'value="x"' in page
    page = site.shown(f"{WINDOWS}1/", {"way": "json", "row": '{"scope": 3}'}, step="back")
    assert '<details class="settings-whole" open>' in page


CHANGES = [
    (OVERLAY, {"value-dailyCap": "30"}, "settings"),
    (f"{WINDOWS}add/", ADDED[WINDOWS], "windows"),
    (f"{WINDOWS}0/", ADDED[WINDOWS], "windows"),
    (f"{WINDOWS}0/remove/", {}, "windows"),
    (f"{LIMITS}0/", ADDED[LIMITS], "limits"),
    (f"{LIMITS}0/remove/", {}, "limits"),
]


@pytest.mark.parametrize("step", ["show", "write"])
@pytest.mark.parametrize(("address", "sent", "kind"), CHANGES)
def test_what_was_changed_meanwhile_is_not_overwritten(site, address, sent, kind, step):
    site.as_()
    lock = site.lock(address)
    site.put(kind, {**FILES[kind], "later": 1})
    files = site.bytes()

    page = site.text(address, {**sent, "lock": lock, "step": step})

    assert site.bytes() == files
    if not (address.endswith("remove/") and step == "show"):
        assert "was changed meanwhile" in page
    # From there it goes on with the file as it is now.
    assert site.lock(address) in page
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("address", "sent", "words"),
    [
        (f"{WINDOWS}add/", {**ADDED[WINDOWS], "from": "25:00"}, "It is '25:00'; allowed is HH:MM"),
        (f"{WINDOWS}add/", {**ADDED[WINDOWS], "days": ["mon", "xyz"]}, "It is 'xyz'; allowed is mon, tue"),
        (f"{WINDOWS}0/", {**ADDED[WINDOWS], "allDay": "on"}, "beside allDay"),
        (f"{WINDOWS}0/", {"way": "json", "row": "{"}, "is not JSON"),
        (f"{WINDOWS}0/", {"way": "json", "row": "[]"}, "is no object"),
        (f"{WINDOWS}0/", {"way": "json", "row": '{"scope": "x"}'}, "from is missing"),
        (
            f"{LIMITS}add/",
            {"way": "form", "scope": "a/b"},
            "at least one of “Starts a day”, “Starts a week”, “Starts a month”, “Containers at once”.",
        ),
        (
            f"{LIMITS}add/",
            {"way": "json", "scope": "", "row": '{"scope": "a/b"}'},
            "set at least one of day, week, month, concurrent.",
        ),
        (f"{LIMITS}add/", {**ADDED[LIMITS], "day": "0"}, "or blank for no limit (to let nothing start"),
        (f"{LIMITS}add/", {**ADDED[LIMITS], "day": "0"}, "It is 0; allowed is a whole number from 1"),
        (
            f"{LIMITS}0/",
            {**ADDED[LIMITS], "scope": "acme/web"},
            "limits[1].scope is 'acme/web', the same scope",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_said_and_what_was_typed_stays(site, address, sent, words):
    site.as_()
    files = site.bytes()
    page = html.unescape(site.shown(address, sent, step="write"))

    assert words in page
    assert site.bytes() == files
    assert f'value="{sent["scope"]}"' in page if sent["way"] == "form" else sent["row"] in page


def test_a_file_with_a_wrong_row_is_listed_and_mended(site):
    site.as_()
    site.put("windows", {"windows": [SECOND, {"scope": "acme/<b>", "from": "1:00"}, 7]})
    page = html.unescape(site.text(WINDOWS))
    assert "✗ to is missing; allowed is HH:MM" in page
    assert "Mend what is marked below." in page
    assert "✗ is 7; allowed is an object" in page
    assert "this is wrong elsewhere" in site.shown(f"{WINDOWS}0/", ADDED[WINDOWS])
    assert "windows[2] is 7" in site.text(f"{WINDOWS}1/remove/")
    site.put("windows", {"windows": [SECOND, 7]})
    assert 'settings-whole" open' in site.text(f"{WINDOWS}1/")
    site.carry_out(f"{WINDOWS}1/remove/", {})
    assert site.holds("windows") == {"windows": [SECOND]}


@pytest.mark.parametrize(
    ("content", "words"), [("{", "is not JSON"), ("[]", "holds []"), (None, "no such file")]
)
def test_a_file_that_gives_no_rows_is_said(site, content, words):
    site.as_()
    site.path("windows").unlink()
    if content is None:
        assert words in site.text(WINDOWS)
        page, _ = site.carry_out(f"{WINDOWS}add/", ADDED[WINDOWS])
        assert "it will be made" in page
        assert len(site.holds("windows")["windows"]) == 1
        return
    site.put("windows", content)
    assert words in html.unescape(site.text(WINDOWS))
    for address in (f"{WINDOWS}add/", f"{WINDOWS}0/", f"{WINDOWS}0/remove/"):
        assert site.text(address)
        assert site.text(address, {**ADDED[WINDOWS], "lock": "x", "step": "write"})
    assert site.path("windows").read_text() == content


def test_a_place_that_no_row_has_is_said(site):
    site.as_()
    for end in ("9/", "9/remove/", "99999999999999999999/"):
        assert "There is no windows[9" in site.text(f"{WINDOWS}{end}")


@pytest.mark.parametrize(
    ("pages", "variable"), [(WINDOWS, "PI_PAUSE_WINDOWS_FILE"), (LIMITS, "PI_SCOPED_LIMITS_FILE")]
)
def test_a_site_that_is_told_of_no_file_says_who_reads_one(site, pages, variable):
    site.as_()
    unset = {variable: None}
    page = html.unescape(site.text(pages, **unset))
    assert f"{variable}</code> is not set for this site" in page
    assert f"alpha reads one, of which this site knows nothing: set {variable}" in page
    home, named = site.text(HOME, **unset), site.text(HOME)
    assert "alpha reads one" in home
    assert (f'href="{pages}"' in home, f'href="{pages}"' in named) == (False, True)
    asked = f"To edit it here, set <code>{variable}</code>"
    assert (asked in home, asked in named) == (True, False)
    assert f'href="{OVERLAY}"' in home
    assert "is not set for this site" in site.text(f"{pages}add/", **unset)
    site.worker(fpPause="", fpLimits="")
    assert "No worker that is there reads one." in site.text(pages, **unset)


@pytest.mark.parametrize(
    ("pages", "field", "reads_none"),
    [(WINDOWS, "fpPause", True), (LIMITS, "fpLimits", True), (OVERLAY, "fpSettings", False)],
)
def test_it_is_said_whether_the_workers_have_the_file(site, pages, field, reads_none):
    site.as_()
    taken = f"{HOME}taken/{pages.split('/')[-2]}/"
    assert "The worker of alpha has taken this version over" in site.text(pages)
    site.worker("bravo", **{field: "other"})
    page = site.text(taken)
    assert f'hx-get="{taken}"' in page
    assert "bravo has not said so yet" in page
    kind = {WINDOWS: "windows", LIMITS: "limits", OVERLAY: "settings"}[pages]
    at = site.path(kind).stat().st_mtime
    os.utime(site.path(kind), (1, 1))
    assert "bravo has another version: the file is this host" in site.text(taken)
    os.utime(site.path(kind), (at, at))
    site.worker(**{field: ""})
    assert ("reads no such file: what stands here does nothing" in site.text(taken)) is reads_none
    site.worker(**{field: "other"})
    assert "has not said so yet" in site.text(pages)
    os.utime(site.path(kind), (1, 1))
    for address in (pages, taken, HOME, f"{HOME}live/"):
        assert "has not taken this version over for" in site.text(address)
    assert site.ask(f"{HOME}taken/nothing/").status_code == 404


def test_a_server_that_is_away_costs_only_what_it_tells(site, django_assert_max_num_queries):
    site.as_()
    for address in (*OPEN, *EDITORS):
        with django_assert_max_num_queries(15):
            page = site.text(address, VALKEY_URL=NOBODY)
        assert "cannot be told now" in page or "/0/" in address or address.endswith("add/")
    page, done = site.carry_out(f"{WINDOWS}0/remove/", {})
    assert done.status_code == 302
