"""What `manage.py triggers` says of all that, and what it says where something cannot be read."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.db import connection

from dispatch.console import fleet, triggers_file
from dispatch.console.schedule_runs import last_runs
from dispatch.console.schedules_shown import show
from dispatch.ids import manual_id, occurrence_id
from dispatch.instants import instant_of
from dispatch.triggers.claims import Claims
from pidispatch_site.errors import ConfigurationError
from runs import rows
from runs.oneshot import one_shot_of_entry
from runs.outcome import Outcome
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.schedulekit import Bench, entry, hourly, schedule
from tests.harness.records import a_record

pytestmark = pytest.mark.django_db

CLOSE = {"type": "issue", "action": ["closed"], "number": 7, "once": True}
SPENT = {**CLOSE, "disarmed": {"at": "2026-01-01T00:00:00Z", "jobId": "gh-1"}}
FORGE = {"kind": "github", "flow": "fix"}
RULES = [
    {"on": {"type": "label", "any": ["bug", "\u202eevil"], "none": ["wontfix"]}, "run": FORGE},
    {"on": {"type": "comment", "phrase": "/do it"}, "run": {"kind": "gitlab", "command": "sync --all"}},
    {"on": {"type": "pull_request", "action": ["labeled"], "all": ["go"]}, "run": FORGE},
    {"on": CLOSE, "run": FORGE},
    {"on": SPENT, "run": FORGE},
]


@pytest.fixture
def bench(valkey, tmp_path):
    return Bench(valkey, tmp_path)


@pytest.fixture
def say(bench, valkey_url):
    """Show the list; answers the exit code, stdout and stderr."""

    def said(**more):
        environment = {
            "VALKEY_URL": more.pop("url", valkey_url),
            "PI_TRIGGERS_FILE": str(more.pop("path", bench.file.path)),
            **({"PI_WORKER_NAME": name} if (name := more.pop("name", "alpha")) else {}),
            "PI_STATE_DIR": str(bench.folder / "state"),
            "TZ": "UTC",
        }
        out, err = [], []
        code = show(environment, write=out.append, warn=err.append, **more)
        return code, "\n".join(out), "\n".join(err)

    return said


def test_a_schedule_is_told_with_its_next_starts_its_place_its_last_run_and_its_state(bench, say):
    due = hourly(bench)
    bench.entries += RULES
    bench.host()
    job_id = occurrence_id("nightly", instant=instant_of(due))
    rows.write([a_record(1, job_id=job_id, outcome=Outcome.FAILED, reason="stalled", host="bravo")])

    code, out, err = say(upcoming=2)

    assert code == 0
    assert "Valkey: unix://" in err
    for pattern in (
        r"As of .* UTC: 1 schedule, 1 to look after; 5 rules for forges\.",
        r"nightly: \d+ \* \* \* \* \(UTC\), flow audit in /",
        r"next \S+ \S+ UTC \(in .*\), \S+ \S+ UTC; on alpha",
        r"its last run failed, stalled; that was .* ago on bravo",
        r"1: github label any of bug, evil; none of wontfix, flow fix",
        r"2: gitlab comment with /do it, command sync --all",
        r"3: github pull request labeled, label all of go, flow fix",
        r"4: github issue #7 closed, flow fix; once, armed",
        r"5: github issue #7 closed, flow fix; spent 2026-01-01T00:00:00Z by gh-1",
    ):
        assert re.search(pattern, out), (pattern, out)
    assert max(map(len, out.splitlines())) <= 140


def test_a_one_shot_that_could_not_be_disarmed_is_told_with_the_job_that_ran(bench, say):
    bench.entries = RULES
    bench.host()
    rule = RULES[3]
    claims, once = Claims(bench.client, fleet.read(bench.client).rows[0].host_id), one_shot_of_entry(3, rule)
    claims.claim(once, "gh-9", is_armed=lambda: True)
    assert "3: github issue #7 closed, flow fix; once, armed" in say()[1]
    claims.note_failed(once, "gh-9")

    assert "github issue #7 closed, flow fix; once, ran by gh-9, not disarmed" in say()[1]
    assert [one["ranBy"] for one in json.loads(say(as_json=True)[1])["rules"]][3] == "gh-9"


def test_what_was_started_by_hand_is_the_last_run_too(bench, say):
    due = hourly(bench)
    instant = instant_of(due)
    rows.write([a_record(1, job_id=occurrence_id("nightly", instant=instant), outcome=Outcome.FAILED)])
    by_hand = manual_id("nightly", instant=instant + timedelta(minutes=3))
    rows.write([a_record(2, job_id=by_hand, host="bravo")])

    _, out, _ = say()

    assert re.search(r"    ok; last run: completed .* ago on bravo, started by hand", out), out


def test_that_nothing_was_due_yet_is_said_once(bench, say):
    bench.entries = [entry(pattern="5 * * * *")]
    bench.host()
    bench.install(schedule(pattern="5 * * * *"), age_ms=0)

    assert "    ok, nothing was due yet\n" in say()[1] + "\n"


def test_the_same_as_data(bench, say):
    due = hourly(bench)
    bench.entries += RULES
    bench.host(fpTriggers="0" * 16)

    code, out, err = say(as_json=True)

    found = json.loads(out)
    assert (code, found["server"], found["file"]["loads"], found["file"]["differsOn"]) == (
        *(0, True, True),
        ["alpha"],
    )
    (line,) = found["schedules"]
    assert (line["state"], line["reason"], line["occurrence"]) == ("missed", "unknown", due)
    assert (line["queues"], line["slot"], line["last"]) == (["pi-jobs@alpha"], "flow audit", None)
    assert line["fix"]
    assert [one["spent"] for one in found["rules"]][2:] == [
        *(None, None),
        {"at": "2026-01-01T00:00:00Z", "job": "gh-1"},
    ]
    assert "is loaded on alpha" in err


def test_without_valkey_the_file_is_told_and_that_it_is_no_more(bench, say):
    bench.entries = [entry(pattern="@hourly")]

    code, out, err = say(url=NOBODY)
    _, data, _ = say(url=NOBODY, as_json=True)

    assert code == 1
    assert re.search(r"- nightly: @hourly \(UTC\), flow audit in /\n    next .*:00:00 UTC", out)
    assert "to look after" not in out
    assert "does not answer" in err
    assert (json.loads(data)["server"], json.loads(data)["schedules"][0]["state"]) == (False, "not-asked")


@pytest.mark.parametrize("content", [b"{", b'{"triggers": [{}]}', b"\xff\xfe", None])
def test_with_a_file_that_does_not_load_what_valkey_has_is_told(content, bench, say):
    bench.host()
    bench.install(schedule("nightly", "5 * * * *"))
    path = bench.folder / "broken.json"
    if content is not None:
        path.write_bytes(content)

    code, out, err = say(path=path)

    assert code == 2
    assert "nightly: 5 * * * *" in out
    assert "does not load" in err
    assert str(path) in err


@pytest.mark.parametrize("installed", [False, True])
def test_of_a_file_that_does_not_load_no_number_is_claimed(installed, bench, say):
    bench.entries = [entry("good"), {"on": {"type": "cron", "id": "bad"}, "run": {}}]
    if installed:
        bench.install(schedule(pattern="5 * * * *"), queue="pi-jobs@bravo", age_ms=0)
        bench.client.zadd("takers:pi-jobs@bravo", {"x": bench.now_ms})

    code, out, err = say()

    head = out.splitlines()[0]
    assert code == 2
    assert head.partition(" UTC: ")[2] == (
        "the file of this host does not load: look after that."
        + (" Hosts keep 1 schedule." if installed else "")
    )
    assert '(cron trigger "bad"): run.kind is missing' in err


def test_why_a_single_host_takes_no_file_is_told(bench, say):
    bench.entries = [entry("far", folder="/nowhere")]
    bench.host(fpTriggers="0" * 16)

    code, out, err = say(name="")

    assert code == 2
    assert "which is no folder of this host; make it" in err
    assert "; no worker takes the file: look after that." in out
    assert "wait a moment" not in err


def at_odds(bench):
    """Alpha's file was edited, bravo's was not: what both took over before is what bravo's still says."""
    names = ("same", "edited", "theirs")
    before = [schedule(name, "5 * * * *") for name in names]
    bench.entries = [entry("same", "5 * * * *"), entry("edited", "6 * * * *"), entry("mine", "5 * * * *")]
    bench.host()
    bench.host("bravo", fpCron="b" * 16, fpTriggers="b" * 16)
    for queue in ("pi-jobs@alpha", "pi-jobs@bravo"):
        bench.install(*before, queue=queue, age_ms=0)


def test_hosts_that_disagree_are_told_with_the_schedules_that_differ(bench, say):
    at_odds(bench)

    code, out, err = say(columns=140)
    found = json.loads(say(as_json=True)[1])

    assert code == 0
    assert "Hosts disagree: bravo has other schedules than the file of this host; nothing is put in" in err
    assert "wait a moment" not in err
    assert found["file"]["disagreesWith"] == ["bravo"]
    told = {one["id"]: (one["state"], one["told"]) for one in found["schedules"]}
    assert told["same"] == ("ok", "ok, nothing was due yet")
    assert told["edited"] == ("refused", "nothing was due yet; bravo has another pattern")
    assert told["theirs"][1].endswith("it is only on bravo, and not in the file of this host")
    assert told["mine"][1].endswith(
        "it stands in the file of this host only, which the others have otherwise"
    )
    assert "3 to look after" in out
    assert "here and on bravo to the same state; until then nothing is put in or taken out" in out


def test_a_disagreement_that_no_table_shows_is_told_too(bench, say):
    bench.entries = [entry("same", "5 * * * *")]
    bench.host()
    bench.host("bravo", fpCron="b" * 16)
    bench.install(schedule("same", "5 * * * *"), age_ms=0)

    assert "No table shows where: compare it with `manage.py triggers` there." in say()[2]


@pytest.mark.django_db(transaction=True)
def test_a_run_table_that_cannot_be_read_is_told(bench, say, monkeypatch):
    hourly(bench)

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_run RENAME TO away")
    try:
        code, _, err = say()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO runs_run")

    assert code == 0
    assert "The run table of this host cannot be read" in err


def test_where_there_is_no_database_none_is_made(monkeypatch, tmp_path):
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "db.sqlite3"))

    assert last_runs(["nightly"], 0) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_variable_that_cannot_be_used_is_refused():
    with pytest.raises(ConfigurationError, match="PI_TRIGGERS_FILE"):
        triggers_file.read({"PI_TRIGGERS_FILE": ""})
