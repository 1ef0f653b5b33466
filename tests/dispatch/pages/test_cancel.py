"""Cancelling jobs from the console: shown first, then done, told in the log, in the background when many."""

from __future__ import annotations

import json
import re
import time
from secrets import token_hex
from types import SimpleNamespace

import pytest
import redis
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import override_settings

from dispatch.console.board import Wanted, matching_ids
from dispatch.console.cancelling_many import in_chunks
from dispatch.ids import rq_id
from dispatch.jobs import local_job
from dispatch.pages import cancel
from dispatch.queue import keys
from dispatch.queue.states import look, look_at
from pidispatch_site.errors import OperationalError
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.queuekit import QUEUE, Host, everything, hash_of, listed
from tests.dispatch.test_console_cancelling import Hooked, answering, lose

QUEUE_PAGE = "/admin/queue/"
CANCEL = f"{QUEUE_PAGE}cancel/"


@pytest.fixture
def operator(client, db, valkey_url):
    user = User.objects.create_user("ann", is_staff=True)
    # Not by the ready group: a test that commits leaves none for the next.
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_fleet", "operate_fleet"]))
    client.force_login(user)
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url}):
        yield client


@pytest.fixture
def host(valkey):
    made = Host(valkey)
    made.beats.register()
    made.enqueue("local-0", "repeat:x:1", "local-2", "local-3")
    return made


def form_of(response):
    """The fields that the confirmation would send."""
    page = response.content.decode()
    assert response.status_code == 200
    return {
        **dict(re.findall(r'<input type="hidden" name="(jobs|job|confirmed)" value="([^"]*)"', page)),
        "reason": "not needed",
    }


def said(response):
    return [str(one) for one in response.context["messages"]]


def logged():
    return [
        (entry.object_repr, json.loads(entry.change_message)) for entry in LogEntry.objects.order_by("pk")
    ]


def test_what_is_to_be_cancelled_is_told_by_what_it_is_about(operator, host, valkey):
    secret = local_job("/srv/sentinel/site", task="sentinel task", flow="fix", model="m-1")
    host.producer.enqueue(QUEUE, "local-s", secret)
    host.producer.enqueue(QUEUE, "local-long", local_job("/srv/site", task=token_hex(70_000)))
    valkey.hset(keys.job(b"local-3"), "data", "[1]")

    shown = operator.post(CANCEL, {"which": "all"}).content.decode()

    assert 'local-s<span class="about">local:site · flow fix · m-1</span>' in shown
    assert "local-long</th>" in shown
    assert "local-3</th>" in shown
    assert "sentinel" not in shown


def test_just_what_was_shown_is_cancelled_and_the_log_says_it(operator, host, valkey):
    before = everything(valkey)
    shown = operator.post(
        CANCEL, {"which": "chosen", "job": ["local-2", rq_id("repeat:x:1"), "local-2", "*"]}
    )
    assert everything(valkey) == before
    assert "These 2 jobs are cancelled" in shown.content.decode()

    done = operator.post(CANCEL, form_of(shown), follow=True)

    assert listed(valkey) == ["local-0", "local-3"]
    assert done.redirect_chain == [(f"{QUEUE_PAGE}?", 302)]
    assert said(done) == [
        "Job local-2 was taken out of the queue: it never runs.",
        "Job repeat:x:1 was taken out of the queue: it never runs.",
    ]
    assert logged() == [
        (
            "2 jobs",
            {
                "action": "cancel",
                "reason": "not needed",
                "before": {"jobs": {"local-2": "queued", "repeat:x:1": "queued"}},
                "after": {"jobs": {"local-2": "dropped", "repeat:x:1": "dropped"}},
            },
        )
    ]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        pytest.param({}, [], id="all of all queues"),
        pytest.param({"id": "local"}, [rq_id("repeat:x:1")], id="beginning"),
        pytest.param({"queue": "pi-jobs@beta"}, None, id="other queue"),
        pytest.param({"section": "deferred"}, None, id="other section"),
        pytest.param({"section": "waiting", "page": "7"}, [], id="whatever the page"),
    ],
)
def test_all_of_a_filter_are_those_that_match_when_they_are_shown(operator, host, valkey, asked, left):
    shown = operator.post(CANCEL, {"which": "all", **asked}, follow=True)
    if left is None:
        assert said(shown) == ["No job was chosen: tick those to be cancelled."]
        return
    host.enqueue("local-later")

    operator.post(CANCEL, form_of(shown))

    assert listed(valkey) == [*left, "local-later"]


def test_a_running_job_is_stopped_in_the_background_with_a_page_of_its_own(operator, host, valkey, begun):
    host.start()
    shown = operator.post(CANCEL, {"which": "all", "section": "running"})
    assert "Running jobs are stopped." in shown.content.decode()

    with answering(valkey, "local-0"):
        done = operator.post(CANCEL, form_of(shown))
        result = begun.run()

    assert done.url == "/admin/operations/0123/"
    assert (result.summary, result.is_good) == ("1 of 1 job cancelled.", True)
    assert begun.rows == [
        (("local-0", "Job local-0 is being stopped by alpha; it ends as operator-cancel."), True)
    ]
    assert [(target, entry["action"], entry["before"], entry["after"]) for target, entry in logged()] == [
        ("local-0", "cancel", {"stood": {"started": 1}, "first": ["local-0"]}, {"operation": "0123"}),
        (
            "local-0",
            "cancel-ended",
            {"stood": {"started": 1}, "first": ["local-0"]},
            {"operation": "0123", "state": "done", "became": {"stopping": 1}},
        ),
    ]


@pytest.fixture
def begun(monkeypatch, valkey):
    """What an action in the background was begun with; `run` does its work here and now."""

    class Begun:
        def __init__(self):
            self.client, self.shown, self.rows, self.done = valkey, "here", [], []

        def begin(self, environment, **given):
            self.given = given
            given["entries"].begun("0123")
            return "0123"

        def run(self):
            result = self.given["work"](self)
            self.given["entries"].ended(SimpleNamespace(id="0123", state="done"))
            return result

        def add(self, *rows):
            self.rows += [(row.cells, row.is_good) for row in rows]

        def show(self, rows):
            self.rows = [(row.cells, row.is_good) for row in rows]

        def advance(self, done):
            self.done.append(done)

    made = Begun()
    monkeypatch.setattr(cancel.operations, "begin", made.begin)
    return made


def test_many_are_cancelled_in_the_background_with_progress(operator, host, valkey, begun):
    host.enqueue(*(f"local-a{number}" for number in range(120)))

    operator.post(CANCEL, form_of(operator.post(CANCEL, {"which": "all", "id": "local-a"})))
    host.enqueue("local-a-later")
    valkey.delete(keys.job(b"local-a7"))
    result = begun.run()

    assert (result.summary, result.is_good) == ("119 of 120 jobs cancelled.", False)
    assert result.notes == ("119 were taken out of their queues.", "1 was not known any more.")
    assert (begun.given["total"], begun.done) == (120, [50, 100, 120])
    # What is left comes first.
    assert [good for _, good in begun.rows] == [False, *[True] * 119]
    assert begun.rows[0][0][0] == "local-a7"
    assert set(listed(valkey)) == {
        "local-0",
        "repeat_3ax_3a1",
        "local-2",
        "local-3",
        "local-a-later",
        "local-a7",
    }


def test_of_very_many_the_first_are_looked_at_before_and_all_are_cancelled(
    operator, host, valkey, begun, monkeypatch
):
    monkeypatch.setattr(cancel, "_MOST_LOOKED_AT", 3)
    host.start()
    host.enqueue(*(f"local-a{number}" for number in range(40)))

    shown = operator.post(CANCEL, {"which": "all"})
    operator.post(CANCEL, form_of(shown))
    with answering(valkey, "local-0"):
        begun.run()

    text = " ".join(re.sub(r"<[^>]+>", " ", shown.content.decode()).split())
    assert "These 44 jobs are cancelled" in text
    assert "How the first 3 stand; those that run come first: Waiting 2 Running 1 " in text
    assert listed(valkey) == []
    target, told = logged()[0]
    stood = {"stood": {"started": 1, "queued": 2}, "first": ["local-0", "repeat:x:1", "local-2"]}
    assert (target, told["before"]) == ("44 jobs", {**stood, "lookedAt": 3})


def test_a_slow_server_is_not_waited_for(operator, host, begun, monkeypatch):
    monkeypatch.setattr(cancel, "_SLOW_SECONDS", 0)

    assert operator.post(CANCEL, {"jobs": "local-0", "confirmed": "1"}).url == "/admin/operations/0123/"
    assert begun.run().is_good


def test_a_server_that_goes_away_meanwhile_leaves_what_is_known(operator, host, valkey, begun):
    host.enqueue(*(f"local-a{number}" for number in range(60)))
    operator.post(CANCEL, form_of(operator.post(CANCEL, {"which": "all", "id": "local-a"})))
    real, calls = valkey.hget, []

    def going(key, name):
        calls.append(key)
        return lose() if len(calls) > 50 else real(key, name)

    begun.client = SimpleNamespace(
        hget=going, hmget=valkey.hmget, register_script=valkey.register_script, pipeline=valkey.pipeline
    )
    with pytest.raises(OperationalError, match="Of 10 jobs are not known what became"):
        begun.run()

    assert (begun.done, len(begun.rows)) == ([50], 50)


@pytest.mark.django_db(transaction=True)
def test_an_action_in_the_background_is_followed_to_its_end(operator, host, valkey):
    """Through the real thread, in Valkey and on the action's own page."""
    host.enqueue(*(f"local-a{number}" for number in range(25)))
    shown = operator.post(CANCEL, {"which": "all", "id": "local-a"})

    page = operator.post(CANCEL, form_of(shown)).url
    deadline = time.monotonic() + 20
    while "25 of 25 jobs cancelled." not in operator.get(page).content.decode() or len(logged()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)

    assert "is not in the log" not in operator.get(page).content.decode()
    assert listed(valkey) == ["local-0", "repeat_3ax_3a1", "local-2", "local-3"]


@pytest.mark.parametrize(
    ("most", "letters", "shown"),
    [
        pytest.param(2, 1000, "local-0 repeat_3ax_3a1", id="jobs"),
        pytest.param(9, 31, "local-0 repeat_3ax_3a1 local-2", id="letters"),
        pytest.param(4, 1000, "local-0 repeat_3ax_3a1 local-2 local-3", id="all"),
    ],
)
def test_of_too_many_as_many_are_shown_as_are_cancelled(operator, host, monkeypatch, most, letters, shown):
    monkeypatch.setattr(cancel, "MOST", most)
    monkeypatch.setattr(cancel, "_LONGEST_FORM", letters)

    response = operator.post(CANCEL, {"which": "all"})

    assert form_of(response)["jobs"] == shown
    is_cut = "no more than these are cancelled in one go" in response.content.decode()
    assert is_cut is (len(shown.split()) < 4)


def test_ids_of_several_sections_are_no_more_than_asked_for(host, valkey):
    host.start()

    assert matching_ids(valkey, Wanted(), limit=2) == [b"local-0", b"repeat_3ax_3a1"]


def test_those_that_run_come_last(valkey, host):
    host.start()

    host.claim()

    targets = look_at(valkey, ["local-0", "repeat:x:1", "local-2", "nobody"])

    assert [one and one.state.value for one in targets.values()] == ["started", "in-hand", "queued", None]
    assert targets["local-0"] == look(valkey, "local-0")
    with answering(valkey, "local-0"):
        assert [len(some) for some in in_chunks(valkey, targets)] == [3, 1]


def test_what_no_command_finds_is_shown_without_a_box_to_tick(operator, host, valkey):
    valkey.hset(keys.job(b"foreign.id"), mapping={"status": "queued", "origin": QUEUE})
    valkey.rpush(keys.queue_keys(QUEUE).jobs, "foreign.id")

    page = operator.get(QUEUE_PAGE).content.decode()
    shown = operator.post(CANCEL, {"which": "all"})

    assert (page.count('name="job"'), "foreign.id" in page) == (4, True)
    assert form_of(shown)["jobs"] == "local-0 repeat_3ax_3a1 local-2 local-3"


def test_a_server_that_is_away_is_said_and_nothing_is_logged(operator, host):
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": NOBODY}):
        for form in ({"which": "all"}, {"jobs": "local-0", "confirmed": "1"}):
            assert "does not answer" in said(operator.post(CANCEL, form, follow=True))[0]
    assert logged() == []


def test_the_place_of_a_socket_is_not_told(operator, host, tmp_path):
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": f"unix://{tmp_path}/nobody.sock"}):
        response = operator.post(CANCEL, {"jobs": "local-0", "confirmed": "1"}, follow=True)

    assert "unix://(a path)" in said(response)[0]
    assert str(tmp_path) not in response.content.decode()


def test_a_fault_between_a_drop_and_its_answer_says_what_is_not_known(operator, host, valkey, monkeypatch):
    racing = Hooked(
        valkey, "-- drop:", before=lambda: (_ for _ in ()).throw(redis.exceptions.ResponseError("OOM"))
    )
    real = cancel.cancel
    monkeypatch.setattr(cancel, "cancel", lambda client, ids: real(racing, ids))

    (words,) = said(operator.post(CANCEL, {"jobs": "local-0", "confirmed": "1"}, follow=True))

    assert "Not confirmed as cancelled: local-0." in words
    assert hash_of(valkey, "local-0")["status"] == "queued"


def test_a_get_shows_the_queue(operator, host, valkey):
    before = everything(valkey)

    assert operator.get(CANCEL, {"jobs": "local-0", "confirmed": "1"}).url == f"{QUEUE_PAGE}?"
    assert everything(valkey) == before


def test_a_held_job_that_is_cancelled_leaves_no_hold(operator, host, valkey):
    job = local_job("/srv/site", task="later", wait_for=({"profile": "idle"},))
    host.producer.enqueue(QUEUE, "local-held", job)

    operator.post(CANCEL, {"jobs": "local-held", "confirmed": "1"})

    assert "local-held" not in listed(valkey)
