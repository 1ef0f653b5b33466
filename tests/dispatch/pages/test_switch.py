"""The page of the kill switch: what it says, who may turn it, what turning it does and leaves in the log."""

from __future__ import annotations

import html
import json
import re
import time
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.db import OperationalError, connection
from django.test import Client, override_settings

from dispatch.console.fleet_facts import Pause, StopAsked
from dispatch.console.instants import stamp
from dispatch.pages import operation_store
from dispatch.pages.operation_state import State
from dispatch.pages.switch_view import view
from dispatch.queue import containers, keys
from hosts import keys as hosts_keys
from hosts import stops, switches
from hosts.rows import Unreachable
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import NOW, appear, fleet, host_id, queue, remember, row
from tests.dispatch.queuekit import Host, everything, now_ms
from tests.harness.way import Manner, Way
from tests.harness.worker_process import until

PAGE = "/admin/switch/"
FORMS = tuple(f"{PAGE}{verb}/" for verb in ("pause", "resume", "stop"))
RESUME_FLEET = f"{PAGE}resume-fleet/"
MAY = {"clerk": (), "viewer": ("view_fleet",), "operator": ("view_fleet", "operate_fleet")}
EVIL = "<script>alert(1)</script>"
ANN = Pause(by="ann", reason="fire", since_ms=NOW, until_ms=NOW + 60_000)


def member(name):
    # Not by the ready groups: a test that commits leaves none for the next.
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=MAY[name]))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def ask(db, valkey_url):
    """Ask for a page as somebody of a group, or POST to it; answers its text."""
    members = {}

    def asked(path, given=None, *, post=None, group="operator", url=valkey_url, status=None, headers=None):
        client = members[group] = members.get(group) or member(group)
        with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": url, "HOME": "/nonexistent"}):
            answer = (
                client.get(path, given or {}, headers=headers) if post is None else client.post(path, post)
            )
        assert answer.status_code == (status or (302 if post is not None else 200)), answer.content.decode()
        if answer.status_code == 302:
            asked.leads_to = answer.url
            return " ".join(map(str, get_messages(answer.wsgi_request)))
        text = answer.content.decode()
        assert EVIL not in text
        main = text.partition('<div id="content"')[2] or text
        asked.markup = main
        asked.links = re.findall(r'<a [^>]*href="([^"]+)"', main)
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())

    return asked


@pytest.fixture
def two(valkey):
    """Two hosts; a job waits for alpha, two containers run on alpha and one on beta."""
    for name in ("alpha", "beta"):
        appear(valkey, name)
    Host(valkey, queue="pi-jobs@alpha").enqueue("local-9")
    for name, job in (("alpha", "local-1"), ("alpha", "local-2"), ("beta", "local-3")):
        container(valkey, host_id(name), f"pi-{job}", job)
    return valkey


def container(client, host, name, job="local-1"):
    entry = {"job": job, "attempt": 0, "token": f"{job}/1", "deadline": now_ms(client) + 60_000}
    client.hset(keys.containers(host), name, json.dumps(entry))


def logged():
    entries = LogEntry.objects.order_by("pk")
    return [(one.user.username, one.object_repr, json.loads(one.change_message)) for one in entries]


def held(client):
    """Who is paused by itself, `*` for the fleet."""
    return sorted(key.decode().removeprefix("pause:") for key in client.scan_iter("pause:*"))


def test_the_page_says_how_the_switch_stands_what_it_holds_and_what_runs(two, ask):
    switches.pause(two, ("pi-jobs@beta",), by="ann", reason=EVIL)

    text = ask(PAGE, group="viewer")

    assert "1 of 3 queues is paused: pi-jobs@beta. Not paused: 2 queues: pi-jobs, pi-jobs@alpha." in text
    assert re.search(r"pi-jobs@alpha takes jobs 1 0 0 ", text)
    assert re.search(r"pi-jobs@beta paused by ann since 20\d\d-\S+ \S+ UTC until resumed: <script>", text)
    assert "3 containers run on 2 hosts." in text
    assert re.search(r"alpha pi-local-2 local-2 20\d\d", text)
    assert "Pause everything" not in text
    assert "Pause everything" in ask(PAGE)
    assert "looks again" not in text
    # Where no script runs this part is not fetched.
    again = ask(f"{PAGE}state/", group="viewer", headers={"HX-Request": "true"})
    assert "1 of 3 queues" in again
    assert "this page looks again every 5 seconds." in again
    assert {"/admin/queue/?queue=pi-jobs%40beta", "/admin/queue/job/local-2/"} <= set(ask.links)


@pytest.mark.parametrize(
    ("facts", "tone", "parts"),
    [
        pytest.param(fleet(row("a")), "good", ["No queue is paused"], id="all runs"),
        pytest.param(
            fleet(row("a"), pause=ANN),
            "bad",
            [
                "The whole fleet is paused",
                "by ann since 2027-01-15 08:00:00 UTC until 2027-01-15 08:01:00 UTC: fire",
            ],
            id="all paused",
        ),
        pytest.param(
            fleet(queue("pi-jobs", pause=ANN)),
            "bad",
            ["Every known queue", "appears later"],
            id="each by itself",
        ),
        pytest.param(
            fleet(row("a"), stops=(StopAsked(host="a", at_ms=NOW, by="ann"),)),
            "good",
            [
                "a stops what it had begun before 2027-01-15 08:00:00 UTC, asked by ann. The fleet is not",
                "Resuming everything, or the fleet's pause only, takes that back.",
            ],
            id="a request stands without the pause",
        ),
        pytest.param(
            fleet(row("a"), stops=(StopAsked(host="a", came_with_drain=True),), drained=frozenset("a")),
            "good",
            [
                "Ending its drain takes that back",
                "the fleet's pause only does not.",
                *("Drained: a takes no job", "paused; its host is drained"),
            ],
            id="one host is stopped",
        ),
        pytest.param(
            fleet(row("a"), stops=(StopAsked(host="a", came_with_drain=True),), pause=ANN),
            "bad",
            ["Its drain is over; undraining it takes that back", "the fleet's pause only does not."],
            id="one host was stopped and its drain is over",
        ),
        pytest.param(
            fleet(roster=Unreachable("timeout"), pause=ANN),
            "bad",
            ["cannot be read (timeout)"],
            id="no registry",
        ),
        pytest.param(fleet(queue("pi-jobs", waiting=None)), "good", ["unreadable"], id="a foreign key"),
        pytest.param(
            fleet(row("a"), queue("pi-jobs@a", age_ms=50_000)),
            "good",
            ["not paused; no worker takes from it"],
            id="nobody takes",
        ),
    ],
)
def test_half_switched_states_have_words(facts, tone, parts):
    found = view(facts, None)

    assert found.state.tone == tone
    assert all(part in str(found) for part in parts)


@pytest.mark.parametrize("names", [(), ("pi-jobs@alpha", "pi-jobs@gone")], ids=["everything", "chosen"])
def test_pause_and_resume_are_confirmed_done_and_logged(two, ask, names):
    chosen = {"queue": names, "some": "1"} if names else {}
    before = everything(two)

    asked = ask(FORMS[0], chosen)
    untouched = everything(two) == before
    said = ask(FORMS[0], post={**chosen, "reason": f"fire {EVIL}", "for": "90m"})
    paused = held(two)
    shown = ask(FORMS[1], chosen)
    resumed = ask(FORMS[1], post={**chosen, "reason": "out"})

    assert untouched
    assert ("Pause 2 queues" if names else "Pause the whole fleet") in asked
    assert re.search(r"pi-jobs@alpha takes jobs 1 0 0", asked)
    assert ("pi-jobs@gone not known here" in asked) is bool(names)
    assert re.search(r"Paused .*, until 20\d\d-\S+ \S+ UTC\.", said)
    assert ("pi-jobs@gone was not known here before: is the name right?" in said) is bool(names)
    assert paused == (sorted(names) or ["*"])
    assert ("until 20" in shown) and "by operator (console)" in shown  # noqa: PT018
    assert ("Resumed 2 queues" if names else "Resumed the whole fleet; 3 queues: ") in resumed
    assert held(two) == []
    (user, target, pause), (_, _, resume) = logged()
    assert (user, target) == ("operator", ", ".join(names) or "the whole fleet")
    assert (pause["action"], pause["before"], pause["reason"]) == ("pause", {}, f"fire {EVIL}")
    flags = pause["after"]
    assert sorted(flags) == paused
    assert {one["until"] - one["since"] for one in flags.values()} == {90 * 60_000}
    assert (resume["action"], resume["before"]) == ("resume", flags)
    assert sorted(resume["after"]["ended"]) == paused


def test_a_pause_whose_time_is_over_says_what_is_not_confirmed(ask, valkey_url, monkeypatch):
    monkeypatch.setattr("dispatch.pages.acting._ALL_SECONDS", 0.5)
    with TemporaryDirectory(prefix="pd-") as folder, Way(Path(folder), valkey_url) as way:
        way.manner, way.seconds = Manner.SLOW, 0.2
        began = time.monotonic()
        text = ask(f"{PAGE}pause/", post={"which": "all"}, url=way.url, status=200)
        took = time.monotonic() - began

    # Two seconds are for what the page shows besides; one answer alone has five.
    assert 0.5 < took < 5
    assert "Not confirmed as paused: the whole fleet." in text
    assert [entry["after"] for _, _, entry in logged()] == [{"confirmed": False, "known": None}]


def test_to_resume_everything_takes_requests_to_stop_back_and_a_queue_under_the_fleets_pause_stays(two, ask):
    stop = stops.ask(two, ("alpha",), by="ann", reason="", request_id="r1")
    switches.pause(two, ("pi-jobs@beta",), by="ann", reason="")

    refused = ask(FORMS[1], post={"queue": "pi-jobs@beta", "reason": ""}, status=200)
    all_of_it = ask(FORMS[1], post={"reason": ""})
    nothing = ask(FORMS[1], post={"reason": ""})

    assert (
        "Still paused: pi-jobs@beta, because the whole fleet is paused. Resuming the whole fleet ends that."
        in refused
    )
    assert all_of_it == (
        "Resumed the whole fleet; 3 queues: pi-jobs, pi-jobs@alpha, pi-jobs@beta."
        " Requests to stop that were taken back: alpha."
    )
    assert "Nothing was paused; 3 queues: " in nothing
    assert not two.exists(hosts_keys.stop_request("alpha"))
    refusal, done, idle = (entry for _, _, entry in logged())
    assert refusal["after"] == {"confirmed": False, "known": {"ended": ["pi-jobs@beta"]}}
    asked = {"hosts": ["alpha"], "by": "ann", "reason": "", "since": stop.at_ms, "with": "pause"}
    assert (sorted(done["before"]), done["before"]["stops"]) == (["*", "stops"], [asked])
    assert done["after"] == {"ended": ["*"], "takenBack": ["alpha"]}
    assert (idle["before"], idle["after"]) == ({}, {"ended": []})


def test_the_fleets_pause_can_be_ended_alone_and_each_way_says_whose_pauses_end_and_stay(two, ask):
    only = RESUME_FLEET
    switches.pause(two, ("pi-jobs@beta",), by="bob", reason="disk")
    alone = ask(PAGE)
    stops.ask(two, ("alpha",), by="ann", reason="fire", request_id="r1")
    stops.ask(two, ("beta",), by="bob", reason="disk", request_id="r2", only="beta")
    fleets, bobs = "the whole fleet, paused by ann since", "pi-jobs@beta, paused by bob since"

    both, links = ask(PAGE), list(ask.links)
    asked = {path: ask(path, query) for path, query in [(only, {}), (FORMS[1], {})]}
    one = ask(FORMS[1], {"queue": "pi-jobs@beta", "some": "1"})
    said = ask(only, post={"reason": "out"})
    left = held(two), two.keys("stop:req:*")
    switches.pause(two, ("*",), by="ann", reason="fire")
    everything = ask(FORMS[1], post={"reason": ""})

    assert "Resume the fleet's pause only" not in alone
    assert "Resume the fleet's pause only…" in both
    assert only in links
    assert re.search(f"Pauses that end {fleets} .*: fire Pauses that stay {bobs} .*: disk", asked[only])
    assert re.search(f"Pauses that end {fleets} .*: fire {bobs} .*: disk", asked[FORMS[1]])
    assert "Pauses that stay" not in asked[FORMS[1]]
    assert re.search(f"Pauses that end {bobs} .*: disk Pauses that stay {fleets} .*: fire", one)
    assert said.startswith(
        "The pause of the whole fleet is ended; still paused: pi-jobs@beta."
        " Requests to stop that were taken back: alpha. Pauses that"
    )
    assert f"Pauses that still hold:\n{bobs}" in said
    assert left == (["pi-jobs@beta"], [b"stop:req:beta"])
    assert "its requests to stop are taken back" in asked[only]
    for host, note in (("alpha", "or the fleet's pause only, takes that back."), ("beta", "only does not.")):
        assert re.search(rf"{host} stops what it had begun before [^.]*\. [^.]*{note}", asked[only]), host
    assert "Shown wherever" not in asked[only]
    assert f"Pauses of single queues that ended:\n{bobs}" in everything
    first = logged()[0][2]
    assert (first["action"], first["after"]) == ("resume", {"ended": ["*"], "takenBack": ["alpha"]})
    assert [(one["hosts"], one["with"]) for one in first["before"]["stops"]] == [
        (["alpha"], "pause"),
        (["beta"], "drain"),
    ]


def test_a_request_that_stands_alone_is_taken_back_and_one_of_a_host_that_is_not_found_is_told(two, ask):
    for name in ("alpha", "beta"):
        two.hset(hosts_keys.stop_request(name), "by", "ann")
    remember(two, "gone", age_ms=0)
    two.hset(hosts_keys.stop_request("gone"), "by", "ann")
    switches.pause(two, ("pi-jobs@beta",), by="bob", reason="disk")
    offered = ask(PAGE)
    two.set(hosts_keys.HOSTS_LIVE, "somebody else's")

    said = ask(RESUME_FLEET, post={"reason": "out"})

    assert "Resume the fleet's pause only…" in offered
    assert "The whole fleet was not paused; still paused: pi-jobs@beta. Requests to stop that" in said
    assert "that were taken back: alpha, beta." in said
    assert "(registry: wrong-type): there may be more than are named here. Requests to stop may stand" in said
    assert two.keys("stop:req:*") == [b"stop:req:gone"]
    assert logged()[0][2]["after"] == {"ended": [], "takenBack": ["alpha", "beta"]}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("host", [None, "alpha"])
def test_a_stop_shows_before_what_it_ends_and_after_what_is_proven(two, ask, host):
    given = {"host": host} if host else {}
    asked = ask(FORMS[2], given)

    ask(FORMS[2], post={**given, "reason": "fire", "seconds": "20"})
    operation_id = ask.leads_to.split("/")[-2]
    count = 2 if host else 3

    def seen():
        return operation_store.read(two, operation_id).row_count == count

    until(seen, seconds=5, what="it has seen each container")
    for name in ("alpha",) if host else ("alpha", "beta"):
        gone = [f"pi-local-{number}" for number in (1, 2, 3)]
        containers.forget(two, host_id(name), gone)
    found = ended(two, operation_id)
    page = ask(ask.leads_to)

    assert two.exists(hosts_keys.stop_request("alpha"))
    assert f"{count} containers run" in asked
    assert ("pi-local-3" in asked) is not host
    assert "will be drained" in asked if host else "will be paused" in asked
    assert "Drain alpha and stop its jobs" in asked if host else "Pause everything and stop all jobs" in asked
    assert found.result.summary == f"{count} of {count} containers are confirmed gone."
    assert [row.cells[3] for row in found.rows] == ["confirmed gone"] * count
    assert f"{count} of {count} containers are confirmed gone." in page
    assert "alpha pi-local-1 job local-1 confirmed gone" in page
    assert "is not in the log" not in page
    assert {"/admin/queue/job/local-1/", "/admin/fleet/host/alpha/" if host else PAGE} <= set(ask.links)
    assert (held(two) == []) is bool(host)
    until(lambda: LogEntry.objects.count() == 2, seconds=5, what="its end is logged")
    (_, target, begun), (_, _, over) = logged()
    assert target == (host or "the whole fleet")
    assert begun["after"] == {"operation": operation_id}
    assert begun["before"]["running"].startswith(f"{count} containers run")
    assert (over["action"], over["before"]) == ("stop-ended", {"containers": count})
    assert (over["after"]["gone"], over["after"]["proven"]) == (count, True)


@pytest.mark.parametrize("lasting", [None, timedelta(hours=1)])
def test_before_what_runs_is_stopped_it_is_said_what_becomes_of_a_drain_or_a_pause_that_holds(
    two, ask, lasting
):
    page = ask(PAGE)
    ends = [
        switches.drain(two, "alpha", by="ann", reason="disk", lasting=lasting).until_ms,
        switches.pause(two, ("*",), by="ann", reason="fire", lasting=lasting).until_ms,
    ]

    drained, paused = ask(FORMS[2], {"host": "alpha"}), ask(FORMS[2])
    stops.ask(two, ("alpha",), by="ann", reason="", request_id="r1", only="alpha")
    stops.ask(two, ("alpha",), by="ann", reason="", request_id="r2")
    held = switches.read(two, (), host="alpha")

    stays = [f" until {stamp(end)}; that end is taken away: " if end else " and stays so: " for end in ends]
    assert "Pause everything and stop running jobs…" in page
    assert f"alpha is drained{stays[0]}it takes no job until somebody undrains it." in drained
    assert f"The whole fleet is paused{stays[1]}no job starts until somebody resumes it." in paused
    assert "Stop the jobs of alpha" in drained
    assert "Drain alpha" not in drained
    assert (held.drain.until_ms, held.fleet.until_ms) == (None, None)


@pytest.mark.django_db(transaction=True)
def test_a_stop_names_what_it_could_not_confirm(two, ask):
    ask(FORMS[2], post={"reason": EVIL, "seconds": "0"})
    found = ended(two, ask.leads_to.split("/")[-2])
    page = ask(ask.leads_to)

    assert found.result.is_good is False
    assert "0 of 3 containers are confirmed gone." in page
    assert "unconfirmed: beta has not answered" in page
    assert "docker rm --force" in page
    assert "The whole fleet is paused" in page


def ended(client, operation_id):
    def over():
        found = operation_store.read(client, operation_id)
        return found is not None and found.state is not State.RUNNING

    until(over, seconds=10, what="the stop has ended")
    return operation_store.read(client, operation_id)


@pytest.mark.parametrize(
    ("verb", "post", "says"),
    [
        pytest.param("pause", {"queue": "pi-jobs@../x"}, "is no queue", id="no queue"),
        pytest.param("pause", {"some": "1"}, "No queue was chosen", id="none chosen"),
        pytest.param("pause", {"for": "soon"}, "is no duration", id="no duration"),
        pytest.param("stop", {"host": "a b"}, "is no worker's name", id="no host"),
        pytest.param("stop", {"seconds": "-1"}, "is no time to wait", id="no seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_turned(two, ask, verb, post, says):
    before = everything(two)

    said = ask(f"{PAGE}{verb}/", post=post, status=200 if {"for", "seconds"} & {*post} else 302)

    assert says in said
    assert everything(two) == before


@pytest.mark.parametrize(
    ("verb", "field", "typed"), [("pause", "for", "ninety minutes or so"), ("stop", "seconds", "a while")]
)
def test_what_is_wrong_is_quoted_in_whole_and_tied_to_its_field(two, ask, verb, field, typed):
    said = ask(f"{PAGE}{verb}/", post={field: typed}, status=200)

    assert f"'{typed}' is no" in said
    assert re.search(rf'<input id="{field}"[^>]*-help problem" aria-invalid="true"', ask.markup)
    assert ask.markup.count("aria-invalid") == 1


@pytest.mark.parametrize("url", [NOBODY, "nonsense", "embedded"])
def test_without_valkey_each_page_says_so_and_a_turn_is_not_confirmed(ask, url):
    texts = [ask(path, url=url) for path in (PAGE, f"{PAGE}state/", *FORMS)]
    texts += [ask(path, url=url, post={"reason": "", "seconds": "0"}, status=200) for path in FORMS[:2]]

    words = {NOBODY: "does not answer", "nonsense": "VALKEY_URL", "embedded": "is not running"}[url]
    assert all(words in text for text in texts)
    assert [one[2]["after"]["confirmed"] for one in logged()] == [False, False]


def test_keys_of_other_kinds_and_hostile_texts_cost_no_page(two, ask):
    two.set("pause:pi-jobs@alpha", "x")
    two.hset("pause:pi-jobs@beta", mapping={"by": EVIL, "reason": EVIL, "since": "9" * 400, "until": EVIL})
    two.set(keys.containers(host_id("beta")), "x")
    container(two, host_id("alpha"), EVIL, EVIL)
    two.hset(keys.containers(host_id("alpha")), b"\xff\x1b", b"\xff")
    two.sadd(hosts_keys.QUEUES_KNOWN, EVIL, b"\xff")
    two.set("rq:wip:pi-jobs@alpha", "x")

    texts = [ask(path) for path in (PAGE, *FORMS)]

    assert all("queues are paused: pi-jobs@alpha, pi-jobs@beta." in text for text in texts)
    assert "More may run than is named here" in texts[0]
    assert EVIL in texts[0]


def test_only_operators_turn_it_and_a_look_changes_nothing(two, ask):
    before = everything(two)

    for path in (PAGE, f"{PAGE}state/", *FORMS):
        assert Client().get(path).status_code == 302
        ask(path, group="clerk", status=403)
        ask(path)
    for path in FORMS:
        ask(path, group="viewer", status=403)
        ask(path, post={"reason": "x"}, group="viewer", status=403)
    ask(PAGE, post={}, status=405)

    forged = Client(enforce_csrf_checks=True)
    forged.force_login(User.objects.get(username="operator"))
    assert [forged.post(path, {"seconds": "0"}).status_code for path in FORMS] == [403] * 3
    assert everything(two) == before
    assert logged() == []


def test_a_job_that_no_list_names_runs_all_the_same(two, ask):
    host = Host(two, name="beta", host_id=host_id("beta"))
    host.enqueue("local-7")
    host.start()
    two.delete(*two.scan_iter(keys.containers("*")))

    assert re.search(r"1 container runs on 1 host\..*beta \(container in no list\) local-7", ask(PAGE))


@pytest.mark.django_db(transaction=True)
def test_an_action_that_the_database_does_not_log_is_done_and_said(two, ask):
    def read_only(execute, sql, *given):
        if "INSERT" in sql and "django_admin_log" in sql:
            raise OperationalError("attempt to write a readonly database")
        return execute(sql, *given)

    ask(PAGE)
    with connection.execute_wrapper(read_only):
        told = ask(FORMS[0], post={"reason": "fire"})

    assert "did not take this action's entry of the log" in told
    assert (held(two), logged()) == (["*"], [])
