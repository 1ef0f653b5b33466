"""The page of the queue and of one job in it: who may see them, what they say, and what is away."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings
from django.utils.html import escape

from dispatch.jobs import local_job
from dispatch.queue import keys
from dispatch.templatetags.console_words import commands
from dispatch.waits.holds import Holds, Waiter
from hosts import keys as hosts_keys
from hosts import switches
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import QUEUE, Host, everything

PAGE = "/admin/queue/"
OTHER = "pi-jobs@beta"
SECRET = "/srv/sentinel-path/site"
PARTS = (PAGE, f"{PAGE}lists/", f"{PAGE}tabs/", f"{PAGE}job/local-run/", f"{PAGE}job/local-run/now/")
ACTIONS = (f"{PAGE}cancel/", f"{PAGE}rerun/")


def member(name, *may, client=None):
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=may))
    client = client or Client()
    client.force_login(user)
    return client


@pytest.fixture
def viewer(client, db, valkey_url):
    """Somebody who may view; the settings name the test's server."""
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url}):
        yield member("viewer", "view_fleet", client=client)


@pytest.fixture
def host(valkey):
    """A worker with a job that runs, one in hand, two that sleep, one that is held, and 12 that wait."""
    made = Host(valkey, host_id="a" * 16)
    made.beats.register()
    for name in ("run", "hand", "cap", "busy", "held"):
        waits = ({"profile": "ci"},) if name == "held" else None
        job = local_job(SECRET, task="sentinel task", flow="fix", model="m-1", wait_for=waits)
        made.producer.enqueue(QUEUE, f"local-{name}", job, scope_hash="abcd")
    run = made.claim()
    made.steps.begin(run, container="pi-job-1", deadline_ms=run.now_ms + 60_000)
    made.claim()
    for reason, cause in (("cap", "over-budget:day"), ("scope-busy", None), ("wait", None)):
        claimed = made.claim()
        made.steps.put_off(
            claimed,
            until_ms=claimed.now_ms + 60_000,
            reason=reason,
            scope_hash="abcd" if reason == "scope-busy" else None,
            cause=cause,
        )
    held = Waiter(job_id="local-held", target="t", label="ci", identity=None)
    Holds(valkey).record(held, now_ms=claimed.now_ms - 5000, until_ms=claimed.now_ms + 60_000)
    Holds(valkey).count_check("local-held", token="x", fault=True)
    made.enqueue(*(f"repeat:x:{number}" for number in range(12)))
    return made


def text_of(response):
    assert response.status_code == 200
    main = response.content.decode().partition("<h1")[2] or response.content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


def test_each_section_says_why_its_jobs_do_not_run_and_nothing_of_what_they_are_to_do(viewer, host):
    response = viewer.get(PAGE)
    text = text_of(response)

    assert "All 17 Running 2 Waiting 12 Deferred 2 Held 1" in text
    assert re.search(r"local-run local · flow fix · m-1 pi-jobs running It runs on the worker alpha in", text)
    assert re.search(r"in (1 min|59 s) 20\d\d-\S+ \S+ UTC alpha pi-job-1", text)
    assert "over-budget:day why? local-cap The cap of starts a day is reached." in text
    assert "held until ci says go; asked once" in text
    assert "a check could not tell the last time" in text
    assert "pi-jobs #1 in-line why? repeat:x:0 It is next in line (of this queue 12 jobs wait, 2 run" in text
    assert "1 to 10 of 12. " in text
    assert "All 12 of waiting" in text
    assert "Job Queue What it does For Ends itself Host local-" in text
    assert "Job Queue Place Why Since repeat" in text
    assert "2 12 2 1 Nothing : jobs wait for a free slot" in text
    appear(host.client, "b1", concurrency=4, slotsUsed=4)
    assert "wait for a free slot (1 host takes from it: 4 of 4 slots used)" in text_of(viewer.get(PAGE))
    assert "sentinel" not in response.content.decode()
    assert '<input type="checkbox"' not in response.content.decode()


@pytest.mark.parametrize(
    ("asked", "there", "not_there"),
    [
        pytest.param({"section": "held"}, "local-held", "local-run", id="section"),
        pytest.param({"section": "waiting", "page": "2"}, "Waiting (12)", "repeat:x:1", id="beyond the end"),
        pytest.param({"id": "repeat:x:11"}, "repeat:x:11", "repeat:x:10", id="beginning of ids"),
        pytest.param({"id": "nobody"}, "No job here has an id that begins so.", "local", id="no such id"),
        pytest.param(
            {"queue": OTHER},
            "Nothing runs or waits here, nor is anything deferred or held.",
            "local-run",
            id="other queue",
        ),
        pytest.param(
            {"queue": "x", "section": "y", "page": "-1", "live": "z"}, "local-run", "begins so", id="nonsense"
        ),
        pytest.param({}, "Stop refreshing", "Look again", id="live"),
        pytest.param({"live": "0"}, "Look again", "Stop refreshing", id="not live"),
        pytest.param({"page": "9" * 40, "section": "running"}, "Running (2)", "local-run", id="far page"),
    ],
)
def test_filters_show_what_they_ask_for(viewer, host, asked, there, not_there):
    text = text_of(viewer.get(PAGE, asked))

    assert there in text
    assert not_there not in text


def test_those_that_run_come_the_longest_first(viewer, host, valkey):
    for job, began in (("hand", "09:00"), ("run", "08:00")):
        valkey.hset(keys.job(f"local-{job}".encode()), "started_at", f"2026-01-01T{began}:00.000000Z")
    host.start()
    valkey.hset(keys.job(b"repeat_3ax_3a0"), "started_at", "2026-01-01T07:00:00.000000Z")

    text = text_of(viewer.get(PAGE, {"section": "running"}))

    assert text.index("repeat:x:0") < text.index("local-run") < text.index("local-hand")


def test_what_a_job_with_very_long_data_is_about_is_not_read(viewer, host, valkey):
    valkey.hset(keys.job(b"local-run"), "data", b"x" * 100_000)

    assert "local-run pi-jobs running" in text_of(viewer.get(PAGE))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("do `a <b>` or `c`; <i>", "do <code>a &lt;b&gt;</code> or <code>c</code>; &lt;i&gt;"),
        ("half a ` <b>", "half a ` &lt;b&gt;"),
        *(
            (f"`manage.py {words}`", f'<a href="/admin/{url}"><code>manage.py {escape(words)}</code></a>')
            for words, url in (
                ("resume", "switch/"),
                ("reroute b-1", "fleet/host/b-1/"),
                ("undrain HOST", "fleet/"),
                ("undrain ../<b>", "fleet/"),
                ("triggers --restore x", "dispatch/schedule/"),
                ("settings --set dailyCap=N", "settings/"),
                ("why a:1", "queue/job/a_3a1/"),
            )
        ),
        ("`manage.py runworker`", "<code>manage.py runworker</code>"),
        ("", ""),
    ],
)
def test_commands_are_set_as_code_and_all_of_it_is_escaped(text, shown):
    assert commands(text) == shown


def test_pages_lead_from_the_first_job_to_the_last(viewer, host):
    host.enqueue(*(f"local-{number:03}" for number in range(100)))
    seen, address = [], "?section=waiting"
    while address:
        page = viewer.get(PAGE + address).content.decode()
        seen += re.findall(r'>why\?<span class="visually-hidden"> ([^<]+)', page)
        following = re.search(r'href="/admin/queue/([^"]*)">Next', page)
        address = following and following[1].replace("&amp;", "&")

    assert seen[:2] + seen[-1:] == ["repeat:x:0", "repeat:x:1", "local-099"]
    assert len(seen) == 112


def test_what_holds_a_queue_up_is_said_and_comes_first(viewer, host, valkey):
    host.producer.enqueue(OTHER, "local-b", local_job("/srv/site", task="x"))
    switches.pause(valkey, [QUEUE], by="ann@ops", reason="<b>rack</b>")
    valkey.sadd(hosts_keys.QUEUES_KNOWN, "pi-jobs@idle")
    text = text_of(viewer.get(PAGE))

    assert text.index("pi-jobs 2 12 2 1 Held up. The queue pi-jobs is paused by ann@ops") < text.index(
        "pi-jobs@beta 0 1 0 0 Held up. The worker beta"
    )
    assert "&lt;b&gt;rack" in text
    assert re.search(r"pi-jobs@idle 0 0 0 0 The worker idle, which alone takes jobs", text)


@pytest.mark.parametrize(
    ("job", "parts"),
    [
        ("run", ["Kind local Target local:site Flow fix Model m-1"]),
        ("run", ["It runs", "on the worker alpha in container pi-job-1", "Container pi-job-1", "Scope abcd"]),
        (
            "busy",
            ["It is deferred", "scope-busy", "job local-run runs on the worker alpha", "What ends that:"],
        ),
        ("held", ["It is held", "Checks asked once, 1 in a row without an answer"]),
        ("cap", ["Cause over-budget:day", "manage.py settings --set dailyCap=N"]),
        ("nobody", ["This job is not known"]),
        ("line", ["3 hosts take from it: 5 of 7 slots used, 1 drained.", "(of this queue 13 jobs wait"]),
    ],
)
def test_why_a_job_does_not_run_is_told(viewer, host, valkey, job, parts):
    host.enqueue("local-line")
    appear(valkey, "b1", concurrency=4, slotsUsed=3)
    appear(valkey, "b2", concurrency=3, slotsUsed=2)
    appear(valkey, "b3", concurrency=9, slotsUsed=1)
    switches.drain(valkey, "b3", by="ann", reason="")
    page, part = (viewer.get(f"{PAGE}job/local-{job}/{rest}") for rest in ("", "now/"))

    for response in (page, part):
        assert [one for one in parts if one not in text_of(response)] == []
        assert "sentinel" not in response.content.decode()


def test_a_job_is_named_by_the_letters_that_an_address_may_have(viewer, host):
    host.enqueue("gh-../<b>")
    (address,) = re.findall(
        r'href="([^"]+)">why\?<span class="visually-hidden"> gh-',
        viewer.get(PAGE, {"id": "gh-"}).content.decode(),
    )

    assert "Job gh-../&lt;b&gt;" in viewer.get(address).content.decode()
    assert viewer.get(f"{PAGE}job/a_b/").status_code == 404


HOSTILE = "<script>alert(1)</script>"
FIELDS = ("host", "reason", "cause", "scope", "attempt", "since", "taker", "data", "status")


def test_what_peers_wrote_is_text_of_bounded_length(viewer, host, valkey):
    valkey.hset(f"containers:{'a' * 16}", HOSTILE, HOSTILE)
    jobs = ("run", "cap", "held")
    pages = []
    for field in FIELDS:
        for job in jobs:
            key = keys.job(f"local-{job}".encode())
            before = valkey.hget(key, field)
            valkey.hset(key, field, HOSTILE * 3000)
            pages.append(viewer.get(f"{PAGE}job/local-{job}/now/"))
            if job == jobs[-1]:
                pages.append(viewer.get(f"{PAGE}lists/"))
            valkey.hset(key, field, before or "")

    assert {page.status_code for page in pages} == {200}
    assert not any("<script>alert" in page.content.decode() for page in pages)
    assert max(len(page.content) for page in pages) < 60_000


@pytest.mark.parametrize("name", ["jobs", "scheduled", "started", "takers"])
def test_a_queue_whose_keys_are_foreign_costs_itself_only(viewer, host, valkey, name):
    host.producer.enqueue(OTHER, "local-b", local_job("/srv/site", task="x"))
    key = getattr(keys.queue_keys(OTHER), name)
    valkey.delete(key)
    valkey.set(key, "x")

    text = text_of(viewer.get(PAGE))

    assert f"{OTHER} is left out: a key of it cannot be read" in text
    assert "local-run" in text


@pytest.mark.parametrize("url", [NOBODY, "nonsense", "embedded"])
def test_a_server_that_is_away_is_said_in_words(viewer, db, url):
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": url}):
        pages = {address: text_of(viewer.get(address)) for address in PARTS}

    assert [address for address, text in pages.items() if not re.search(r"Valkey|VALKEY_URL", text)] == []
    assert "cannot be shown" in pages[PAGE]


def test_who_may_see_and_who_may_act(viewer, host, valkey):
    before, nobody, clerk = everything(valkey), Client(), member("clerk")

    assert {nobody.get(address).status_code for address in (*PARTS, *ACTIONS)} == {302}
    assert {clerk.get(address).status_code for address in PARTS} == {403}
    assert {viewer.get(address).status_code for address in PARTS} == {200}
    assert {viewer.post(address, {"confirmed": "1"}).status_code for address in ACTIONS} == {403}
    assert {viewer.get(address).status_code for address in ACTIONS} == {403}
    assert {viewer.post(address).status_code for address in PARTS} == {405}
    assert everything(valkey) == before


def test_a_page_asks_the_database_little(viewer, host, django_assert_max_num_queries):
    viewer.get(PAGE)
    with django_assert_max_num_queries(6):
        viewer.get(PAGE)
