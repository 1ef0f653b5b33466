"""No secret, folder or text of a job stands where it has no business (issue's check 6, D17).

Sentinels are planted wherever such a thing can be; then every address of the site is asked by everybody,
while all is well and while this or that is broken, and every action is done.
"""

from __future__ import annotations

import io
import json
import logging
import re
import socketserver
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper
from django.test import Client, override_settings
from django.utils.functional import SimpleLazyObject

from dispatch.api import tokens
from dispatch.ids import rq_id
from dispatch.jobdata import Review, Target, TargetType
from dispatch.pages import operations
from dispatch.pages.doctor_rounds import ROUNDS
from dispatch.payload import encode
from hosts import keys as hosts_keys
from hosts import switches
from pidispatch_site import conf
from pidispatch_site.library_logs import LOGGING, WithoutErrorText
from runs import recording, rows
from runs.files import RecordFiles
from runs.outcome import Outcome, Verdict
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear
from tests.dispatch.job_samples import FULL_FORGE, FULL_LOCAL
from tests.dispatch.queuekit import Host, everything
from tests.dispatch.schedulekit import entry
from tests.dispatch.test_web_security import addresses

ENVIRONMENT, PLACE, DATA, FILE, OUTPUT, SERVER = (
    f"s3ntinel-{name}" for name in ("environment", "place", "data", "file", "output", "server")
)
SENTINEL = "s3ntinel-"
EDITORS = ("/admin/dispatch/schedule/", "/admin/settings/")
MAY = {
    "viewer": ("view_fleet", "view_schedule", "view_run"),
    "operator": ("view_fleet", "view_schedule", "view_run", "operate_fleet"),
    "configurer": ("view_fleet", "view_schedule", "view_run", "configure_fleet"),
    "reader": ("view_fleet", "view_run", "read_job_output"),
    "admin": (
        *("view_fleet", "view_schedule", "view_run", "operate_fleet", "configure_fleet"),
        *("edit_privileged_trigger", "read_job_output", "view_user", "change_user"),
    ),
}
LOCAL = replace(
    FULL_LOCAL,
    folder=f"/srv/{PLACE}/site",
    task=f"{DATA} task",
    skills_dir=f"/srv/{PLACE}/skills",
    secrets={"TOKEN": f"op://{DATA}/item"},
    wait_for=({"after": "2100-09-01T09:00:00Z"}, {DATA: DATA}),
)
COMMAND = replace(LOCAL, flow=None, task=None, command=f"audit {DATA}")
FORGE = replace(
    FULL_FORGE,
    target=Target(type=TargetType.PULL_REQUEST, number=9, title=DATA, body=DATA, head=DATA, base=DATA),
    trigger=replace(
        FULL_FORGE.trigger,
        delivery_id=DATA,
        review=Review(id=3, body=DATA, state="approved", author_association="MEMBER"),
    ),
    instructions=DATA,
)
IDS = ("job-1", "job-2", "job-3", "job-4", "job-5")
# What the error of a database or of a mistake may say.
SAID = f"{ENVIRONMENT} at /srv/{PLACE} with {DATA}"


def planted_file(folder):
    told = entry(
        folder=f"/srv/{PLACE}/{FILE}",
        task=f"{FILE} task",
        image="img:1",
        secrets={"A": FILE},
        skillsDir=f"/srv/{PLACE}/skills",
        **{FILE: FILE},
    )
    rule = {
        "on": {"type": "comment", "phrase": FILE},
        "run": {"kind": "github", "flow": "fix", "instructions": FILE},
    }
    (folder / "triggers.json").write_text(json.dumps({"triggers": [told, rule]}))
    about = {"scope": f"/srv/{PLACE}/{FILE}", "allDay": True}
    (folder / "windows.json").write_text(json.dumps({"windows": [about, {**about, "scope": FILE}]}))
    limit = {"scope": f"/srv/{PLACE}/{FILE}", "day": 1}
    (folder / "limits.json").write_text(
        json.dumps({"version": 1, "limits": [limit, {**limit, "scope": FILE}]})
    )
    (folder / "settings.json").write_text(json.dumps({"dailyCap": 3, FILE: FILE}))


@pytest.fixture
def planted(valkey, tmp_path):
    """Variables of a site, and a fleet with jobs in every state, a log, records and operators' files."""
    folder = tmp_path / PLACE
    logs = folder / "logs"
    logs.mkdir(parents=True, mode=0o700)
    planted_file(folder)
    valkey.execute_command("ACL", "SETUSER", "watcher", "reset", "on", f">{ENVIRONMENT}", "~*", "&*", "+@all")
    appear(valkey, "alpha", folder=f"/srv/{PLACE}", VALKEY_URL=ENVIRONMENT, cause=DATA)
    appear(valkey, "beta", concurrency=DATA, beatAt=f"/srv/{PLACE}", slotsUsed=ENVIRONMENT)
    valkey.hset(hosts_keys.host_row("gamma"), mapping={"name": f"/srv/{PLACE}", "hostId": DATA})
    valkey.sadd(hosts_keys.HOSTS_LIVE, "gamma", f"/srv/{PLACE}", DATA)
    valkey.sadd(hosts_keys.QUEUES_KNOWN, f"/srv/{PLACE}", "pi-jobs@gamma")
    jobs(valkey)
    for job_id in IDS:
        RecordFiles(logs).log_path(job_id).write_text(f"printed {OUTPUT}\n")
    yield {
        "PI_STATE_DIR": str(folder / "state"),
        "PI_LOGS_DIR": str(logs),
        "PI_TRIGGERS_FILE": str(folder / "triggers.json"),
        "PI_SETTINGS_FILE": str(folder / "settings.json"),
        "PI_PAUSE_WINDOWS_FILE": str(folder / "windows.json"),
        "PI_SCOPED_LIMITS_FILE": str(folder / "limits.json"),
        "PI_WORKER_NAME": "alpha",
        "PI_AUTH_FROM_PI": "0",
        "PI_EGRESS": "0",
        "TZ": "UTC",
        "HOME": str(folder),
        "ANTHROPIC_API_KEY": ENVIRONMENT,
        "PI_GITHUB_TOKEN": ENVIRONMENT,
        "PI_GITHUB_WEBHOOK_SECRET": ENVIRONMENT,
        "DATABASE_URL": f"postgres://watcher:{ENVIRONMENT}@db.invalid/{ENVIRONMENT}",
        "VALKEY_URL": "",
    }
    valkey.execute_command("ACL", "DELUSER", "watcher")


def jobs(client):
    """Jobs that wait, sleep, are held, run and have ended, and records as a worker makes them of such."""
    host = Host(client)
    for job_id, job in zip(IDS, (LOCAL, COMMAND, FORGE, LOCAL, LOCAL), strict=True):
        host.producer.enqueue(host.queue, job_id, job, scope_hash=job.scope_hash)
    host.end(host.start(), Outcome.FAILED)
    host.steps.put_off(host.claim(), until_ms=4_000_000_000_000, reason="cap", cause="daily")
    host.start()
    for job_id in IDS:
        told = {"exc_info": SAID, "description": SAID, "meta": SAID, "last-refusal": SAID, "attempts": SAID}
        client.hset(f"rq:job:{rq_id(job_id)}", mapping=told)
    client.hset(f"rq:job:{rq_id('job-5')}", "data", SAID)
    switches.pause(client, ["pi-jobs@alpha"], by="anna", reason="because")


def record(job_id, job):
    now = datetime.now(UTC)
    facts = recording.facts_of(job_id, {**encode(job), "error": SAID}, queued_at=now)
    timing = recording.Timing(attempt=0, host="alpha", started_at=now, ended_at=now)
    ran = recording.Ran(
        tokens={"input": 1, "output": 1, "total": 2, DATA: DATA},
        usage={"v": 1, "models": [], DATA: DATA},
        session={"resumed": False, "reason": "none", "bytes": 1, "path": f"/srv/{PLACE}"},
    )
    verdict = Verdict(outcome=Outcome.FAILED)
    return recording.ended(facts, timing, verdict, final=True, budget_reserved=True, ran=ran)


@pytest.fixture
def people(db):
    """A browser a role."""
    found = {}
    rows.write([record(job_id, LOCAL) for job_id in IDS[:2]])
    for name, may in MAY.items():
        user = User.objects.create_user(name, is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=may))
        found[name] = Client(raise_request_exception=False)
        found[name].force_login(user)
    token = tokens.create("t", user=user, lifetime=None, now=datetime.now(UTC))
    found["program"] = Client(raise_request_exception=False, headers={"authorization": f"Bearer {token}"})
    found["stranger"] = Client(raise_request_exception=False)
    return found


@pytest.fixture
def printed():
    """What Django and libraries write to stderr."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(WithoutErrorText(fmt=LOGGING["formatters"]["line"]["format"], style="{"))
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


@contextmanager
def site(environment):
    config = SimpleLazyObject(lambda: conf.load(environment))
    with override_settings(PIDISPATCH_ENVIRONMENT=environment, PIDISPATCH=config):
        yield


def everywhere():
    more = ("/admin/runs/run/?q=job", "/admin/queue/?section=deferred", "/api/queue?limit=100")
    more += (*(f"/admin/queue/job/{rq_id(job_id)}/" for job_id in IDS), "/admin/runs/run/job-2/")
    more += tuple(f"/admin/dispatch/schedule/{end}" for end in ("entry/0/", "entry/0/remove/"))
    # Passwords of others, and a history that nobody keeps.
    return tuple(one for one in (*addresses(), *more) if "/auth/" not in one or "user/" not in one)


def is_allowed(sentinel, who, address):
    if sentinel == OUTPUT:
        return "read_job_output" in MAY.get(who, ()) and address.startswith("/admin/runs/run/job-")
    is_editor = "configure_fleet" in MAY.get(who, ()) and address.startswith(EDITORS)
    return is_editor and sentinel in {FILE, PLACE}


def look(who, answer):
    address = answer.request["PATH_INFO"]
    said = f"{b''.join(answer).decode()} {dict(answer.headers)} {answer.cookies}"
    found = {one for one in (ENVIRONMENT, PLACE, DATA, FILE, OUTPUT, SERVER) if one in said}
    wrong = {one for one in found if not is_allowed(one, who, address)}
    at = min((said.find(one) for one in wrong), default=0)
    assert not wrong, (who, address, wrong, said[max(0, at - 200) : at + 200])
    return found


def walk(people, *names):
    """Ask every address as each of these; answers what was seen by whom."""
    seen = set()
    for who in names:
        for address in everywhere():
            seen |= {(who, one) for one in look(who, people[who].get(address))}
    return seen


def test_while_all_is_well_nobody_sees_one(planted, people, valkey_url, events, printed):
    environment = {**planted, "VALKEY_URL": valkey_url.replace("://", f"://watcher:{ENVIRONMENT}@")}
    with site(environment):
        people["viewer"].get("/admin/")
        ROUNDS.wait(30)
        seen = walk(people, *people)

    # They can be seen where that is meant: what was planted is there.
    assert seen == {
        *((who, one) for who in ("configurer", "admin") for one in (FILE, PLACE)),
        *((who, OUTPUT) for who in ("reader", "admin")),
    }
    assert SENTINEL not in str(events()) + printed.getvalue()


class _Repeats(socketserver.StreamRequestHandler):
    """A server that repeats what it was asked, as some do in their errors."""

    def handle(self):
        while line := self.rfile.readline():
            words = [self._word() for _ in range(int(line[1:]))]
            if words[0].upper() in {b"AUTH", b"CLIENT", b"SELECT", b"HELLO"}:
                self.wfile.write(b"+OK\r\n")
            else:
                said = (
                    f"-ERR no '{SERVER}' and `{SERVER}`, with args beginning with: {SERVER} /srv/{PLACE}\r\n"
                )
                self.wfile.write(said.encode())

    def _word(self):
        return self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2]


@pytest.fixture
def repeating():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Repeats) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"redis://watcher:{ENVIRONMENT}@127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def broken_files(planted, valkey):
    for name in ("TRIGGERS", "SETTINGS", "PAUSE_WINDOWS", "SCOPED_LIMITS"):
        broken = {
            "triggers": [{"on": FILE, "run": {FILE: FILE}}],
            FILE: FILE,
            "windows": FILE,
            "limits": FILE,
            "dailyCap": FILE,
            "secretProfiles": {FILE: FILE},
        }
        Path(planted[f"PI_{name}_FILE"]).write_text(json.dumps(broken))
    return {}


def refused(planted, valkey):
    valkey.execute_command("ACL", "SETUSER", "watcher", "resetkeys", "~rq:none", "-@all", "+ping", "+client")
    return {}


FAULTS = {
    "files are broken": broken_files,
    "files are away": lambda planted, valkey: {
        name: f"/srv/{PLACE}/none" for name in planted if name.endswith(("_FILE", "LOGS_DIR"))
    },
    "files are no files": lambda planted, valkey: {
        name: planted["HOME"] for name in planted if name.endswith("_FILE")
    },
    "variables are wrong": lambda planted, valkey: {
        "PI_STATE_DIR": f"{PLACE}\n",
        "PI_LOGS_DIR": f"{PLACE}\n",
        "PI_TRIGGERS_FILE": f"{PLACE}/x",
        "PI_DAILY_CAP": ENVIRONMENT,
        "PI_WORKER_NAME": f"/{ENVIRONMENT}",
        "PI_EGRESS": ENVIRONMENT,
        "TZ": f"/srv/{PLACE}",
    },
    "valkey refuses": refused,
    "the password is wrong": lambda planted, valkey: {
        "VALKEY_URL": planted["VALKEY_URL"].replace(ENVIRONMENT, f"{ENVIRONMENT}-x")
    },
    "valkey is away": lambda planted, valkey: {
        "VALKEY_URL": NOBODY.replace("://", f"://watcher:{ENVIRONMENT}@")
    },
    "a socket is away": lambda planted, valkey: {"VALKEY_URL": f"unix:///srv/{PLACE}/valkey.sock"},
    "the address is none": lambda planted, valkey: {"VALKEY_URL": f"redis:/{ENVIRONMENT}@[{ENVIRONMENT}/x"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_while_something_is_broken_nobody_sees_one(
    fault, planted, people, valkey, valkey_url, events, printed
):
    planted["VALKEY_URL"] = valkey_url.replace("://", f"://watcher:{ENVIRONMENT}@")
    with site({**planted, **FAULTS[fault](planted, valkey)}):
        people["viewer"].get("/admin/")
        ROUNDS.wait(30)
        walk(people, "operator" if "file" in fault else "admin")

    assert SENTINEL not in str(events()) + printed.getvalue()


def test_a_server_that_repeats_what_it_was_asked_shows_none(planted, people, repeating, events, printed):
    with site({**planted, "VALKEY_URL": repeating}):
        walk(people, "admin")
        for address in addresses():
            look("admin", people["admin"].post(address, ACTION, follow=True))

    assert SENTINEL not in str(events()) + printed.getvalue()


@pytest.mark.parametrize("error", [OperationalError, ValueError])
def test_an_error_of_the_database_or_of_ours_shows_none(
    error, planted, people, valkey_url, events, printed, monkeypatch
):
    def fails(self, sql, params=None):
        raise error(SAID)

    with site({**planted, "VALKEY_URL": valkey_url}):
        monkeypatch.setattr(CursorWrapper, "execute", fails)
        walk(people, "viewer", "program", "stranger")
        monkeypatch.undo()

    assert SENTINEL not in str(events()) + printed.getvalue()


# What each form needs, whichever it is sent to.
ACTION = {
    "reason": "x",
    "confirmed": "1",
    "jobs": "job-2",
    "job": "job-1",
    "seconds": "0",
    "create": "on",
    "step": "write",
    "way": "json",
    "value-dailyCap": "7",
    "unknown-0": "on",
}


def order(address):
    """What takes something away, or ends the session, comes last."""
    return next(
        (place for place, word in enumerate(("nightly", "remove", "stop", "logout")) if word in address), -1
    )


@pytest.mark.django_db(transaction=True)
def test_what_is_kept_of_actions_has_none(planted, people, valkey, valkey_url, events, printed, monkeypatch):
    environment = {**planted, "VALKEY_URL": valkey_url.replace("://", f"://watcher:{ENVIRONMENT}@")}
    ended = threading.Semaphore(0)
    finish = operations.Operation.run

    def run(self, work, told):
        finish(self, work, told)
        ended.release()

    monkeypatch.setattr(operations.Operation, "run", run)
    admin = people["admin"]
    made = {"folder": planted["HOME"], "task": f"{FILE} other", "image": "img:2", "x": FILE}
    sent = {
        "entry/0": entry("nightly", **made),
        "entry/1": entry("second", **made),
        "schedule/add": entry("third", **made),
        "windows": {"scope": f"/srv/{PLACE}/{FILE}", "allDay": True},
        "limits": {"scope": f"/srv/{PLACE}/{FILE}-new", "day": 1},
    }
    with site(environment):
        for address in sorted(everywhere(), key=order):
            lock = re.search(r'name="lock" value="(\w+)"', b"".join(admin.get(address)).decode())
            row = next((json.dumps(made) for part, made in sent.items() if part in address), "{}")
            given = {**ACTION, "lock": lock[1] if lock else "", "entry": row, "row": row}
            answer = admin.post(address, given, follow=True)
            look("admin", answer)
        begun = sum(one["event"] == "operation_started" for one in events())
        for _ in range(begun):
            assert ended.acquire(timeout=30)
        look("admin", admin.get("/admin/log/"))
        kept = {name: value for name, value in everything(valkey).items() if name.startswith("op:")}

    log = [f"{one.object_repr} {one.object_id} {one.change_message}" for one in LogEntry.objects.all()]
    told = {json.loads(one.change_message)["action"] for one in LogEntry.objects.exclude(change_message="[]")}
    assert told >= {
        *("pause", "resume", "stop", "stop-ended", "cancel", "rerun", "host-drain", "host-undrain"),
        *("trigger-added", "trigger-changed", "trigger-removed", "schedule-started"),
        *("window-added", "window-changed", "limit-added", "limit-removed", "settings-changed"),
    }
    assert begun
    assert kept
    for kind in (log, kept.items(), events(), printed.getvalue().splitlines()):
        assert [one for one in map(str, kind) if SENTINEL in one] == []
