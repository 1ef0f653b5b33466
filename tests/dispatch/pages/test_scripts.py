"""A script in every text that an operator, an agent, a job or a peer may write is inert (issue's check 8).

`scriptkit` plants them, each with a name. Whatever the site answers is looked through, and so is which of
them it showed: what is not shown has not been shown to be inert.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.test import Client, override_settings
from django.utils.functional import SimpleLazyObject

from dispatch.pages.doctor_rounds import ROUNDS
from dispatch.pages.queue_asked import token_of
from pidispatch_site import conf
from runs import export, list_address
from runs.models import Run
from tests.dispatch import scriptkit
from tests.dispatch.queuekit import everything
from tests.dispatch.scriptkit import JOBS, OPERATIONS, evil
from tests.dispatch.test_web_security import addresses, inert

NAMED = re.compile(r"zz-(.+?)-zz")
SAMPLE = re.compile(r'#.*|\w+(?:\{(?:\w+="(?:[^"\\\n]|\\.)*",?)*\})? (?:[-+.\de]+|[-+]Inf|NaN)')
PLAIN = {"text/plain", "text/plain; version=0.0.4", "text/csv", "text/javascript", "application/json"}
_JOB = r"(?:job-\w+|jobid)"
#: What is planted and stands nowhere, and why.
NOWHERE = re.compile(
    "|".join(
        (
            # Of a row or an entry of which something cannot be right only that is said, of what is no
            # capability, boot, reason, queue or host nothing.
            *(r"beta\..+", "gamma", r"row\.caps", "taker", "put-off", "queue", r"container\..+", "log.raw"),
            # Of a schedule's table ids, patterns and instants are shown, of a hold counts.
            *(r"sched\..+", r"since(?:\.at)?", "fired", r"torn\..+", r"hold\..+"),
            # RQ's fields, and ours that say something only in another state.
            rf"{_JOB}\.(?:\w+_(?:name|ttl|id)|attemptLog|description|last_heartbeat|left|putBacks|timeout)",
            *(rf"{_JOB}\.(?:host|cause)", r"job-odd\..+", r"op-(?:running|interrupted)\.result\.summary"),
        )
    )
)
OF_FILES = re.compile(r"/admin/(?:\Z|overview/|settings/|dispatch/)")
EDITS = re.compile(r"/admin/(?:settings|dispatch)/")
ACCOUNTS = "/admin/auth/"
# Where no form is sent: it ends the session, or deletes somebody; a password takes a second.
NOT_SENT = re.compile(r"/admin/(?:logout|password_change|auth/\w+/[^/]+/(?:delete|password))/")


@pytest.fixture
def logs(tmp_path):
    found = tmp_path / "logs"
    found.mkdir(mode=0o700)
    return found


@pytest.fixture
def folder(tmp_path):
    """Where the operator's files are; its name is a script as far as a name can be."""
    found = tmp_path / evil("folder").replace("/", " ")
    found.mkdir()
    return found


@pytest.fixture
def environment(valkey_url, db, tmp_path, logs):
    """The variables of a site that has no files yet."""
    return {
        "VALKEY_URL": valkey_url,
        "PI_STATE_DIR": str(tmp_path / "state"),
        "PI_LOGS_DIR": str(logs),
        "PI_WORKER_NAME": "alpha",
        "PI_EGRESS": "0",
        "TZ": "UTC",
        "HOME": str(tmp_path),
    }


@pytest.fixture
def admin(db):
    """The browser of somebody who may do everything, and whose name is a script."""
    browser = Client()
    browser.force_login(User.objects.create_superuser(evil("admin")[:150]))
    return browser


class Site:
    """The site as the admin sees it under an environment; `seen`: the scripts that it has shown."""

    def __init__(self, browser, environment):
        self.browser = browser
        config = SimpleLazyObject(lambda: conf.load(environment))
        self._settings = override_settings(PIDISPATCH_ENVIRONMENT=environment, PIDISPATCH=config)
        self.seen = set()
        self.fields = set()

    def __enter__(self):
        self._settings.enable()
        self.browser.get("/admin/")
        ROUNDS.wait(30)
        return self

    def __exit__(self, *_):
        self._settings.disable()

    def look(self, answer):
        """Find an answer inert, and note what it showed."""
        address, kind = answer.request["PATH_INFO"], answer["Content-Type"].partition("; charset")[0]
        text = b"".join(answer).decode()
        # A program is told as JSON that something is away.
        assert answer.status_code < 500 or (answer.status_code, kind) == (503, "application/json"), address
        assert answer["X-Content-Type-Options"] == "nosniff", address
        assert "zz-" not in f"{dict(answer.headers)} {answer.cookies}", address
        match kind:
            case "text/html":
                inert(address, text)
                self.fields |= set(re.findall(r'name="([\w-]+)"', text))
            case "application/json":
                json.loads(text)
            case "text/csv":
                cells = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
                assert not [cell for cell in cells if cell.startswith(export._FORMULA)], address
            case _:
                assert kind in PLAIN, (address, kind)
        if kind.startswith("text/plain; version"):
            assert [line for line in text.splitlines() if not SAMPLE.fullmatch(line)] == []
        self.seen |= set(NAMED.findall(html.unescape(text)))


def everywhere():
    yield from addresses()
    yield from (f"/admin/operations/{one}/{end}" for one in OPERATIONS.values() for end in ("", "progress/"))
    yield from (f"/admin/queue/job/{token_of(one)}/{end}" for one in JOBS for end in ("", "now/"))
    yield from (f"/admin/dispatch/schedule/entry/{place}/{end}" for place in "02" for end in ("", "remove/"))
    yield from (f"/admin/settings/{kind}/0/" for kind in ("windows", "limits"))
    yield from ("/admin/queue/?section=deferred", "/admin/runs/run/job-2/", "/admin/runs/run/later-version/")
    people = [
        *(("group", one) for one in Group.objects.all()),
        *(("user", one) for one in User.objects.all()),
    ]
    for model, one in people:
        yield from (f"/admin/auth/{model}/{one.pk}/{end}/" for end in ("change", "delete", "history"))


def planted(valkey, environment):
    """What has been planted, wherever it came to stand."""
    files = [Path(path).read_text() for name, path in environment.items() if name.endswith("_FILE")]
    kept = [list(model.objects.values()) for model in (Run, LogEntry, User, Group)]
    return set(NAMED.findall(f"{everything(valkey)} {files} {kept}"))


@pytest.fixture
def site(admin, environment, valkey, folder, logs):
    """The site of the host alpha, with all that `scriptkit` plants."""
    environment |= scriptkit.fleet(valkey, folder)
    scriptkit.history(logs)
    scriptkit.people(User.objects.get())
    with Site(admin, environment) as found:
        yield found


def test_every_text_is_inert_where_it_is_shown_and_where_it_is_repeated(site, environment, valkey, events):
    there = planted(valkey, environment)
    texts = {
        one.name for one in Run._meta.concrete_fields if one.get_internal_type() in {"TextField", "JSONField"}
    }

    for address in everywhere():
        site.look(site.browser.get(address))

    assert {one for one in there - site.seen if not NOWHERE.fullmatch(one)} == set()
    assert {"job-cap.cause", "job-runs.host", "container", "job-runs.folder", "job-cap.repo"} <= site.seen
    # Each text of a run is a script, those of later versions included.
    assert texts - {"tokens"} <= {one.partition(".")[0] for one in named("run", site.seen)}

    repeat(site)
    typed = named("typed", site.seen)
    assert {"reason", "q", "queue", "host", "entry", "row", "value-dailyCap", "username"} <= typed
    assert {"first_name", "last_name", "email", "name"} <= typed
    assert not NAMED.findall(str(events()))


def named(part, names):
    return {one.removeprefix(f"{part}.") for one in names if one.startswith(f"{part}.")}


def repeat(site):
    """Type a script into every field, and into every filter in an address."""
    # Without the last word nothing is done; what goes on in the background would outlive the test.
    fields = {*site.fields, *list_address._FILTERS} - {"confirmed", "step", "way"}
    typed = {name: evil(f"typed.{name}") for name in fields}
    # Whoever is logged in is among those whose accounts are written.
    other = Client()
    other.force_login(User.objects.create_superuser("other"))
    for address in everywhere():
        site.look(site.browser.get(address, typed))
        if not NOT_SENT.match(address):
            browser = other if address.startswith(ACCOUNTS) else site.browser
            for way in ("form", "json") if EDITS.match(address) else ("form",):
                sent = {**typed, "step": "show", "way": way}
                site.look(browser.post(address, sent, follow=True))


def test_what_a_file_may_not_say_is_inert_where_it_is_told(admin, environment, folder):
    environment |= scriptkit.broken_files(folder)
    environment |= {name: evil(f"variable.{name}") for name in ("PI_PROVIDER", "PI_MODEL")}
    with Site(admin, environment) as site:
        for address in filter(OF_FILES.match, addresses()):
            site.look(admin.get(address))
    assert {"entry", "type", "run.kind", "scope", "zone", "day", "from", "limit"} <= named(
        "broken", site.seen
    )
    assert named("variable", site.seen) == {"PI_PROVIDER", "PI_MODEL"}
